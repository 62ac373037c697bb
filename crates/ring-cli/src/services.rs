//! The engines by which `ring serve` and `ring call` find each other: shared memory, or zenoh where endpoints are given.

use ring_net::transport::{Connection, Listener};
use std::error::Error;

/// Listens for calls of that service, from processes of this host or at those endpoints.
pub fn listen(
    service: &str,
    endpoints: &[String],
    clients: usize,
) -> Result<Box<dyn Listener>, Box<dyn Error>> {
    match endpoints {
        [] => shared_memory::listen(service, clients),
        _ => network::listen(service, endpoints),
    }
}

/// Connects to that service, on this host or at those endpoints.
pub fn connect(service: &str, endpoints: &[String]) -> Result<Box<dyn Connection>, Box<dyn Error>> {
    match endpoints {
        [] => shared_memory::connect(service),
        _ => network::connect(service, endpoints),
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
    use super::{Connection, Error, Listener};
    use ring_net::network::{Endpoints, connect as to, listen as at};

    pub fn listen(
        service: &str,
        endpoints: &[String],
    ) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        let endpoints = Endpoints { listen: endpoints.to_vec(), ..Endpoints::default() };
        Ok(Box::new(at(service, endpoints.config()?)?))
    }

    pub fn connect(
        service: &str,
        endpoints: &[String],
    ) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        let (listen, connect) = (Vec::new(), endpoints.to_vec());
        Ok(Box::new(to(service, Endpoints { listen, connect, scouting: None }.config()?)?))
    }
}

#[cfg(not(feature = "network"))]
mod network {
    use super::{Connection, Error, Listener};

    const LACKS: &str = "this `ring` was built without the network: install it with `--features network`, or leave out --listen and --connect for \
         processes of one host";

    pub fn listen(_: &str, _: &[String]) -> Result<Box<dyn Listener>, Box<dyn Error>> {
        Err(LACKS.into())
    }

    pub fn connect(_: &str, _: &[String]) -> Result<Box<dyn Connection>, Box<dyn Error>> {
        Err(LACKS.into())
    }
}
