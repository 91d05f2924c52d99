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
    /// The target of an address; for "", of QUANTD_ADDRESS, or else of this machine.
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

    /// Whether it is this machine itself, where nobody else can listen.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Target::Unix(_) => true,
            Target::Host(host) | Target::Dns(host) => {
                // Not by the first characters: 127.0.0.1.example.org is another machine.
                let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
                let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
                name == "localhost" || address.is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

fn with_port(host: &str, address: &str) -> Result<String, Error> {
    if host.starts_with('[') {
        return match host.split_once(']') {
            Some((name, "")) => Ok(format!("{name}]:{DEFAULT_PORT}")),
            Some((name, port)) if port.starts_with(':') => Ok(format!("{name}]:{}", checked(&port[1..], address)?)),
            _ => Err(Error::invalid(format!("address {address}: an address that begins with [ must be [IPv6] or [IPv6]:port"))),
        };
    }
    if host.matches(':').count() > 1 {
        return Ok(format!("[{host}]:{DEFAULT_PORT}"));
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    if name.is_empty() {
        return Err(Error::invalid(format!("address {address} names no host")));
    }
    Ok(format!("{name}:{}", checked(port, address)?))
}

/// A port that can exist; the usual one if none is given.
fn checked<'a>(port: &'a str, address: &str) -> Result<&'a str, Error> {
    match port {
        "" => Ok(DEFAULT_PORT),
        // parse() alone accepts "+1".
        _ if port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|number| number > 0) => Ok(port),
        _ => Err(Error::invalid(format!("address {address}: port {port:?} must be a number from 1 to 65535"))),
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
            ("[::1]:", host("[::1]:50051")),
            ("a:65535", host("a:65535")),
            ("unix:/a.sock", Target::Unix("/a.sock".into())),
            ("unix:///a.sock", Target::Unix("/a.sock".into())),
            ("dns:///a:7", Target::Dns("a:7".into())),
            ("dns:a", Target::Dns("a:50051".into())),
        ] {
            assert_eq!(Target::parse(address).unwrap(), want, "{address}");
        }
        for address in ["http://a", "https://a:1", ":7", "[::1", "[::1]x", "xds:///a", "dns:///"] {
            assert!(Target::parse(address).is_err(), "{address}");
        }
    }

    #[test]
    fn this_machine() {
        for address in ["unix:/a", "", "127.9.9.9:1", "localhost", "::1", "[::1]:1", "dns:///localhost:1"] {
            assert!(Target::parse(address).unwrap().is_local(), "{address}");
        }
        for address in ["a", "127.0.0.1.example.org", "localhost.org:1", "[::2]:1", "dns:///a"] {
            assert!(!Target::parse(address).unwrap().is_local(), "{address}");
        }
    }

    #[test]
    fn ports_that_cannot_exist() {
        for port in ["65536", "99999", "99999999999999999999", "0", "-1", "+1", "a", "1a", "0x50", "\u{661}"] {
            for host in ["127.0.0.1", "[::1]", "dns:///a"] {
                let error = Target::parse(&format!("{host}:{port}")).unwrap_err().to_string();
                assert!(error.contains(&format!("port {port:?}")) && error.contains("65535"), "{host}:{port}: {error}");
            }
        }
    }
}
