//! What a module asks of the driver and the GPU.

use crate::{Statement, statements};

/// The header of a module.
#[derive(Debug, Clone, Copy)]
pub struct Header<'a> {
    /// The statement `.version`.
    pub version: Option<Statement<'a>>,
    /// The statement `.target`.
    pub target: Option<Statement<'a>>,
}

/// Reads the header of `ptx`.
#[must_use]
pub fn header(ptx: &str) -> Header<'_> {
    let mut header = Header { version: None, target: None };
    for statement in statements(ptx) {
        match statement.text.split_whitespace().next() {
            Some(".version") => header.version = header.version.or(Some(statement)),
            Some(".target") => header.target = header.target.or(Some(statement)),
            _ => {}
        }
        if header.version.is_some() && header.target.is_some() {
            break;
        }
    }
    header
}

impl<'a> Header<'a> {
    /// The version of PTX, major and minor: 8 and 4 of `.version 8.4`.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        let (major, minor) = self.version?.value().split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// The architecture: `sm_70` of `.target sm_70, debug`.
    #[must_use]
    pub fn architecture(&self) -> Option<&'a str> {
        self.target?.value().split(',').next().map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use super::header;

    #[test]
    fn version_and_architecture_are_read() {
        let found = header("// .version 1.0\n.version 8.4\n.target sm_70, debug\n");
        assert_eq!((found.version(), found.architecture()), (Some((8, 4)), Some("sm_70")));
        assert_eq!(found.version.map(|statement| statement.line), Some(2));
        let found = header(".version 8\n.targets sm_70\n");
        assert_eq!((found.version(), found.architecture()), (None, None));
        assert!(found.version.is_some() && found.target.is_none());
    }
}
