//! Channels: to one server, to a socket in the file system, to all servers of a name.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::mpsc::Sender;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, Uri};
use tonic::Code;
use tower::discover::Change;

use crate::address::Target;
use crate::Error;

/// How often the servers of a name are looked up again.
const LOOK_UP_EVERY: Duration = Duration::from_secs(30);

/// Does not wait for a connection; only a name of several servers is looked up.
pub(crate) async fn channel(target: &Target, tls: Option<ClientTlsConfig>) -> Result<Channel, Error> {
    match target {
        Target::Unix(path) => {
            let path = path.clone();
            // No host: servers and proxies expect "localhost" then.
            let connector = tower::service_fn(move |_: Uri| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            Ok(endpoint("localhost", tls)?.connect_with_connector_lazy(connector))
        }
        Target::Host(host) => Ok(endpoint(host, tls)?.connect_lazy()),
        Target::Dns(name) => {
            let servers = look_up(name).await.map_err(|error| Error::new(Code::Unavailable, format!("{name}: {error}")))?;
            let (channel, changes) = Channel::balance_channel(servers.len().max(16));
            // Once here, so that errors of the name or the certificates are known now.
            endpoint_at(name, servers.iter().next(), tls.as_ref())?;
            tokio::spawn(follow(name.clone(), servers, tls, changes));
            Ok(channel)
        }
    }
}

fn endpoint(authority: &str, tls: Option<ClientTlsConfig>) -> Result<Endpoint, Error> {
    let explain = |error: &dyn std::error::Error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Error::invalid(format!("{authority}: {error}{cause}"))
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))
        .map_err(|error| explain(&error))?
        .connect_timeout(Duration::from_secs(20))
        // Only while a call is in flight: otherwise a lost server is noticed only when TCP gives up, after minutes.
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10));
    match tls {
        Some(tls) => endpoint.tls_config(tls).map_err(|error| explain(&error)),
        None => Ok(endpoint),
    }
}

/// One of the servers of a name, with the name's certificate.
fn endpoint_at(name: &str, server: Option<&SocketAddr>, tls: Option<&ClientTlsConfig>) -> Result<Endpoint, Error> {
    let host = name.rsplit_once(':').map_or(name, |(host, _)| host).trim_matches(['[', ']']);
    let tls = tls.map(|tls| tls.clone().domain_name(host));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let origin = format!("{scheme}://{name}").parse::<Uri>().map_err(|error| Error::invalid(format!("{name}: {error}")))?;
    let authority = server.map_or_else(|| name.to_string(), |server| server.to_string());
    Ok(endpoint(&authority, tls)?.origin(origin))
}

async fn look_up(name: &str) -> std::io::Result<HashSet<SocketAddr>> {
    Ok(tokio::net::lookup_host(name).await?.collect())
}

/// Tells the channel about the servers until it is gone. If a name cannot be looked up for a while, nothing changes.
async fn follow(
    name: String,
    mut servers: HashSet<SocketAddr>,
    tls: Option<ClientTlsConfig>,
    changes: Sender<Change<SocketAddr, Endpoint>>,
) {
    let mut known = HashSet::new();
    loop {
        for gone in known.difference(&servers) {
            if changes.send(Change::Remove(*gone)).await.is_err() {
                return;
            }
        }
        for new in servers.difference(&known) {
            let Ok(endpoint) = endpoint_at(&name, Some(new), tls.as_ref()) else {
                continue;
            };
            if changes.send(Change::Insert(*new, endpoint)).await.is_err() {
                return;
            }
        }
        known = servers.clone();
        if tokio::time::timeout(LOOK_UP_EVERY, changes.closed()).await.is_ok() {
            return;
        }
        match look_up(&name).await {
            Ok(found) if !found.is_empty() => servers = found,
            _ => {}
        }
    }
}
