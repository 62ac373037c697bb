//! The engines by which `ring serve` and `ring call` find each other: shared memory, or zenoh where endpoints or a configuration are given.

use ring_net::transport::{Connection, Listener};
use std::error::Error;
use std::path::Path;

/// Listens for calls of that service, from processes of this host or at those endpoints, by a file of zenoh's configuration.
pub fn listen(
    service: &str,
    endpoints: &[String],
    file: Option<&Path>,
    clients: usize,
) -> Result<Box<dyn Listener>, Box<dyn Error>> {
    match (endpoints, file) {
        ([], None) => shared_memory::listen(service, clients),
        _ => network::listen(service, endpoints, file),
    }
}

/// Connects to that service, on this host or at those endpoints, by a file of zenoh's configuration.
pub fn connect(
    service: &str,
    endpoints: &[String],
    file: Option<&Path>,
) -> Result<Box<dyn Connection>, Box<dyn Error>> {
    match (endpoints, file) {
        ([], None) => shared_memory::connect(service),
        _ => network::connect(service, endpoints, file),
    }
}

#[cfg(target_os = "linux")]
mod shared_memory {
    use super::{Connection, Error, Listener};
    use ring_net::shared_memory::{Config, connect as to, listen as at};

    pub fn listen(service: &str, clients: usize) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        Ok(Box::new(at(service, &Config { clients, ..Config::default() })?))
    }

    pub fn connect(service: &str) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        Ok(Box::new(to(service, &Config::default())?))
    }
}

#[cfg(not(target_os = "linux"))]
mod shared_memory {
    use super::{Connection, Error, Listener};

    const LACKS: &str =
        "services by shared memory are for Linux only; give an endpoint by --listen or --connect";

    pub fn listen(_: &str, _: usize) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        Err(LACKS.into())
    }

    pub fn connect(_: &str) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        Err(LACKS.into())
    }
}

#[cfg(feature = "network")]
mod network {
    use super::{Connection, Error, Listener, Path};
    use ring_net::network::{Endpoints, carry_frames, connect as to, listen as at, zenoh::Config};

    pub fn listen(
        service: &str,
        endpoints: &[String],
        file: Option<&Path>,
    ) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        let endpoints = Endpoints { listen: endpoints.to_vec(), ..Endpoints::default() };
        Ok(Box::new(at(service, config(endpoints, file)?)?))
    }

    pub fn connect(
        service: &str,
        endpoints: &[String],
        file: Option<&Path>,
    ) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        let (listen, connect) = (Vec::new(), endpoints.to_vec());
        Ok(Box::new(to(service, config(Endpoints { listen, connect, scouting: None }, file)?)?))
    }

    /// What the file says, if there is one, but for endpoints that are given.
    fn config(endpoints: Endpoints, file: Option<&Path>) -> Result<Config, Box<dyn Error>> {
        let Some(file) = file else { return Ok(endpoints.config()?) };
        let failed = |what: &dyn ToString| format!("{}: {}", file.display(), what.to_string());
        let mut config = Config::from_file(file).map_err(|why| failed(&why))?;
        carry_frames(&mut config)?;
        for (key, endpoints) in
            [("listen/endpoints", endpoints.listen), ("connect/endpoints", endpoints.connect)]
        {
            if !endpoints.is_empty() {
                config.insert_json5(key, &format!("{endpoints:?}")).map_err(|why| failed(&why))?;
            }
        }
        Ok(config)
    }
}

#[cfg(not(feature = "network"))]
mod network {
    use super::{Connection, Error, Listener, Path};

    const LACKS: &str = "this `ring` was built without the network: install it with `--features network`, or leave out --listen, --connect and \
         --zenoh for processes of one host";

    pub fn listen(
        _: &str,
        _: &[String],
        _: Option<&Path>,
    ) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        Err(LACKS.into())
    }

    pub fn connect(
        _: &str,
        _: &[String],
        _: Option<&Path>,
    ) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        Err(LACKS.into())
    }
}
