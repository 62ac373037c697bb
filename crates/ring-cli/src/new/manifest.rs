//! Adding lines to a Cargo.toml that somebody wrote, and leaving all else as it is.

use ring_builder::text;

/// A Cargo.toml, and whether it is any other than it was.
#[derive(Debug)]
pub struct Manifest {
    text: String,
    changed: bool,
}

impl Manifest {
    /// What was read.
    pub fn new(text: String) -> Manifest {
        Manifest { text, changed: false }
    }

    /// What is to be written, if it is other than what was read.
    pub fn changed(&self) -> Option<&str> {
        self.changed.then_some(&self.text)
    }

    /// The value of a key in a table, as it stands there; that of a table `[table.key]` is empty.
    pub fn value(&self, table: &str, key: &str) -> Option<&str> {
        let line = text::section(&self.text, table).into_iter().find(|line| text::key(line) == key);
        let value = line.map(|line| line.split_once('=').map_or("", |(_, value)| value.trim()));
        let own_table = format!("{table}.{key}");
        value.or_else(|| text::sections(&self.text).contains(&own_table.as_str()).then_some(""))
    }

    /// Whether the key was added: not if it is there.
    pub fn add(&mut self, table: &str, key: &str, value: &str) -> bool {
        if self.value(table, key).is_some() {
            return false;
        }
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let line = format!("{key} = {value}{end}");
        match self.end_of(table) {
            Some(at) => {
                let unfinished = !self.text[..at].ends_with('\n');
                let before = if unfinished { end } else { "" };
                self.text.insert_str(at, &format!("{before}{line}"));
            }
            None => {
                let before = match self.text.as_str() {
                    "" => String::new(),
                    text if text.ends_with('\n') => end.to_owned(),
                    _ => end.repeat(2),
                };
                self.text += &format!("{before}[{table}]{end}{line}");
            }
        }
        self.changed = true;
        true
    }

    /// Behind the last line of a table that says something.
    fn end_of(&self, table: &str) -> Option<usize> {
        let (mut inside, mut end, mut at) = (false, None, 0);
        for line in self.text.split_inclusive('\n') {
            at += line.len();
            match text::sections(line).first() {
                Some(name) => inside = *name == table,
                None if line.trim().is_empty() || line.trim().starts_with('#') => continue,
                None => {}
            }
            if inside {
                end = Some(at);
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(toml: &str, table: &str, key: &str) -> String {
        let mut manifest = Manifest::new(toml.to_owned());
        assert!(manifest.add(table, key, "1"), "{toml}");
        manifest.changed().unwrap().to_owned()
    }

    #[test]
    fn a_line_comes_to_the_end_of_its_table() {
        assert_eq!(added("[a]\nx = 2\n\n# b\n[b]\n", "a", "y"), "[a]\nx = 2\ny = 1\n\n# b\n[b]\n");
        assert_eq!(added("[a] # first\n[b]\n", "a", "y"), "[a] # first\ny = 1\n[b]\n");
        assert_eq!(added("[a]\nx = [\n  2,\n]", "a", "y"), "[a]\nx = [\n  2,\n]\ny = 1\n");
        assert_eq!(added("[a]\r\n\r\n[b]\r\n", "a", "y"), "[a]\r\ny = 1\r\n\r\n[b]\r\n");
    }

    #[test]
    fn a_table_comes_to_the_end() {
        assert_eq!(added("", "a", "y"), "[a]\ny = 1\n");
        assert_eq!(added("[b]\nx = 2", "a", "y"), "[b]\nx = 2\n\n[a]\ny = 1\n");
        assert_eq!(added("[a.b]\n", "a", "y"), "[a.b]\n\n[a]\ny = 1\n");
    }

    #[test]
    fn what_is_there_stays() {
        for toml in ["[a]\ny = 2\n", "[a]\ny.z = 2\n", "[a]\n\"y\" = 2\n", "[a.y]\nz = 2\n"] {
            let mut manifest = Manifest::new(toml.to_owned());
            assert!(!manifest.add("a", "y", "1"), "{toml}");
            assert_eq!(manifest.changed(), None);
        }
        assert_eq!(Manifest::new("[a]\ny = \"z\" \n".to_owned()).value("a", "y"), Some("\"z\""));
    }
}
