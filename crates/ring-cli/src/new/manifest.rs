//! Adds keys to an existing Cargo.toml and keeps the rest as it is.

use toml_edit::{DocumentMut, Item, Table, TomlError, Value};

/// A Cargo.toml, and whether it is any other than it was.
#[derive(Debug)]
pub struct Manifest {
    toml: DocumentMut,
    /// Whether its lines end as on Windows.
    crlf: bool,
    changed: bool,
}

impl Manifest {
    /// What was read.
    ///
    /// # Errors
    /// When it is no TOML.
    pub fn new(text: &str) -> Result<Manifest, TomlError> {
        Ok(Manifest { toml: text.parse()?, crlf: text.contains("\r\n"), changed: false })
    }

    /// What is to be written, if it is other than what was read.
    pub fn changed(&self) -> Option<String> {
        let text = self.toml.to_string().replace("\r\n", "\n");
        self.changed.then(|| if self.crlf { text.replace('\n', "\r\n") } else { text })
    }

    /// What stands at a key in a table.
    pub fn get(&self, table: &str, key: &str) -> Option<&Item> {
        self.toml.get(table)?.get(key)
    }

    /// The text at a key in a table, if it is one.
    pub fn text(&self, table: &str, key: &str) -> Option<&str> {
        self.get(table, key)?.as_str()
    }

    /// Whether the key was added, with a value of TOML: not if it is there, or where there is no place for it.
    pub fn add(&mut self, table: &str, key: &str, value: &str) -> bool {
        if self.get(table, key).is_some() {
            return false;
        }
        let new = !self.toml.is_empty() && !self.toml.contains_key(table);
        let table = self.toml.entry(table).or_insert_with(|| {
            let mut table = Table::new();
            table.decor_mut().set_prefix(if new { "\n" } else { "" });
            Item::Table(table)
        });
        let (Some(table), Ok(value)) = (table.as_table_like_mut(), value.parse::<Value>()) else {
            return false;
        };
        table.insert(key, Item::Value(value));
        self.changed = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(toml: &str, table: &str, key: &str) -> String {
        let mut manifest = Manifest::new(toml).unwrap();
        assert!(manifest.add(table, key, "1"), "{toml}");
        manifest.changed().unwrap()
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
    }

    #[test]
    fn a_table_comes_before_those_below_it() {
        assert_eq!(added("[a.b]\n", "a", "y"), "[a]\ny = 1\n[a.b]\n");
        assert_eq!(added("a = { x = 2 }\n", "a", "y"), "a = { x = 2 , y = 1 }\n");
    }

    #[test]
    fn what_is_there_stays() {
        for toml in ["[a]\ny = 2\n", "[a]\ny.z = 2\n", "[a]\n\"y\" = 2\n", "[a.y]\nz = 2\n"] {
            let mut manifest = Manifest::new(toml).unwrap();
            assert!(!manifest.add("a", "y", "1"), "{toml}");
            assert_eq!(manifest.changed(), None);
        }
        let manifest = Manifest::new("[a]\ny = \"z\" \n").unwrap();
        assert_eq!((manifest.text("a", "y"), manifest.text("a", "z")), (Some("z"), None));
    }
}
