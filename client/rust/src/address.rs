//! Addresses as users write them.

use crate::Error;

pub(crate) const DEFAULT_PORT: &str = "50051";

/// Where a connection goes.
#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    /// A socket in the file system.
    Unix(String),
    /// host:port.
    Host(String),
    /// host:port, where the host is a name of several servers.
    Dns(String),
}

impl Target {
    /// Of "", the address of QUANTD_ADDRESS, else this machine's.
    pub(crate) fn parse(address: &str) -> Result<Target, Error> {
        let variable = std::env::var("QUANTD_ADDRESS").unwrap_or_default();
        let address = if address.is_empty() { variable.as_str() } else { address }.trim();
        if address.is_empty() {
            return Ok(Target::Host(format!("127.0.0.1:{DEFAULT_PORT}")));
        }
        if address.starts_with("http://") || address.starts_with("https://") {
            return Err(Error::invalid(format!(
                "address {address}: quantd speaks gRPC; give host:port, and QUANTD_TLS_CA for TLS"
            )));
        }
        if let Some(path) = address.strip_prefix("unix:") {
            // unix:///path and unix:/path are the same; unix:path is relative.
            return Ok(Target::Unix(path.strip_prefix("//").unwrap_or(path).to_string()));
        }
        if let Some(name) = address.strip_prefix("dns:") {
            return Ok(Target::Dns(with_port(name.trim_start_matches('/'), address)?));
        }
        if address.contains("://") {
            return Err(Error::invalid(format!("address {address}: not host:port, unix:/path or dns:///host:port")));
        }
        Ok(Target::Host(with_port(address, address)?))
    }

    /// Whether it is this machine itself, so that nobody else can listen.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Target::Unix(_) => true,
            Target::Host(host) | Target::Dns(host) => {
                ["127.", "localhost:", "[::1]:"].iter().any(|local| host.starts_with(local))
            }
        }
    }
}

fn with_port(host: &str, address: &str) -> Result<String, Error> {
    if host.starts_with('[') {
        if host.ends_with(']') {
            return Ok(format!("{host}:{DEFAULT_PORT}"));
        }
        if !host.contains("]:") {
            return Err(Error::invalid(format!("address {address}: what begins with [ is [IPv6] or [IPv6]:port")));
        }
        return Ok(host.to_string());
    }
    match host.matches(':').count() {
        0 if host.is_empty() => Err(Error::invalid(format!("address {address} names no host"))),
        0 => Ok(format!("{host}:{DEFAULT_PORT}")),
        1 if host.starts_with(':') => Err(Error::invalid(format!("address {address} names no host"))),
        1 if host.ends_with(':') => Ok(format!("{host}{DEFAULT_PORT}")),
        1 => Ok(host.to_string()),
        _ => Ok(format!("[{host}]:{DEFAULT_PORT}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let host = |text: &str| Target::Host(text.to_string());
        for (address, want) in [
            ("a", host("a:50051")),
            ("a:", host("a:50051")),
            (" a:7 ", host("a:7")),
            ("::1", host("[::1]:50051")),
            ("[::1]", host("[::1]:50051")),
            ("[::1]:7", host("[::1]:7")),
            ("unix:/a.sock", Target::Unix("/a.sock".into())),
            ("unix:///a.sock", Target::Unix("/a.sock".into())),
            ("dns:///a:7", Target::Dns("a:7".into())),
            ("dns:a", Target::Dns("a:50051".into())),
        ] {
            assert_eq!(Target::parse(address).unwrap(), want, "{address}");
        }
        for address in ["http://a", "https://a:1", ":7", "[::1", "xds:///a", "dns:///"] {
            assert!(Target::parse(address).is_err(), "{address}");
        }
    }
}
