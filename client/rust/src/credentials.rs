//! TLS and token from files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use tonic::{Request, Status};

use crate::Error;

/// Files that define whom the client trusts, and who it is. Without any: plain text, and no token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// PEM: the authority that signed the server's certificate.
    pub tls_ca: Option<PathBuf>,
    /// PEM: this client's certificate, if the server requires one; goes with `tls_key`.
    pub tls_cert: Option<PathBuf>,
    /// PEM: the key of `tls_cert`.
    pub tls_key: Option<PathBuf>,
    /// The token to send with every call, over TLS, or to this machine only. Read again when it changes.
    pub auth_token_file: Option<PathBuf>,
}

impl Credentials {
    /// The files that QUANTD_TLS_CA, QUANTD_TLS_CERT, QUANTD_TLS_KEY and QUANTD_AUTH_TOKEN_FILE name.
    pub fn from_environment() -> Credentials {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Credentials {
            tls_ca: path("QUANTD_TLS_CA"),
            tls_cert: path("QUANTD_TLS_CERT"),
            tls_key: path("QUANTD_TLS_KEY"),
            auth_token_file: path("QUANTD_AUTH_TOKEN_FILE"),
        }
    }

    /// None if no file asks for TLS.
    pub(crate) fn tls(&self) -> Result<Option<ClientTlsConfig>, Error> {
        if self.tls_ca.is_none() && self.tls_cert.is_none() && self.tls_key.is_none() {
            return Ok(None);
        }
        let mut config = ClientTlsConfig::new();
        match &self.tls_ca {
            Some(path) => config = config.ca_certificate(Certificate::from_pem(read_pem("QUANTD_TLS_CA", path)?)),
            None => return Err(Error::invalid("a client's certificate without QUANTD_TLS_CA: no server can be trusted")),
        }
        match (&self.tls_cert, &self.tls_key) {
            (None, None) => {}
            (Some(cert), Some(key)) => {
                let (cert, key) = (read_pem("QUANTD_TLS_CERT", cert)?, read_pem("QUANTD_TLS_KEY", key)?);
                config = config.identity(Identity::from_pem(cert, key));
            }
            (cert, key) => {
                let name = |path: &Option<PathBuf>| path.clone().unwrap_or_default().display().to_string();
                return Err(Error::invalid(format!(
                    "QUANTD_TLS_CERT is \"{}\", QUANTD_TLS_KEY is \"{}\": a client's certificate needs both",
                    name(cert),
                    name(key)
                )));
            }
        }
        Ok(Some(config))
    }

    /// `private`: whether nobody else can listen.
    pub(crate) fn token(&self, private: bool) -> Result<Token, Error> {
        let Some(path) = &self.auth_token_file else {
            return Ok(Token::default());
        };
        if !private {
            return Err(Error::invalid("QUANTD_AUTH_TOKEN_FILE: a token goes over TLS (QUANTD_TLS_CA), or to this machine only"));
        }
        let file = TokenFile { path: path.clone(), known: Mutex::new(None) };
        file.read().map_err(|why| Error::invalid(format!("QUANTD_AUTH_TOKEN_FILE: {why}")))?;
        Ok(Token { file: Some(Arc::new(file)) })
    }
}

/// `name` tells which of the files it is.
fn read_pem(name: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let content =
        std::fs::read(path).map_err(|error| Error::invalid(format!("{name}: can't read {}: {error}", path.display())))?;
    if !content.windows(11).any(|window| window == b"-----BEGIN ") {
        return Err(Error::invalid(format!("{name}: {} is not a PEM file", path.display())));
    }
    Ok(content)
}

/// Adds "authorization: Bearer TOKEN" to every call, with the token in a file.
#[derive(Clone, Default)]
pub struct Token {
    file: Option<Arc<TokenFile>>,
}

struct TokenFile {
    path: PathBuf,
    known: Mutex<Option<Known>>,
}

/// The time of the file's change, its size, and the header that calls carry.
type Known = (SystemTime, u64, MetadataValue<Ascii>);

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(file) = &self.file {
            let value = file.read().map_err(Status::unauthenticated)?;
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }
}

impl TokenFile {
    /// If the file is missing or has no token, perhaps because it is being replaced, the last token stays.
    fn read(&self) -> Result<MetadataValue<Ascii>, String> {
        let mut known = self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.look(&mut known).or_else(|why| known.as_ref().map(|(_, _, value)| value.clone()).ok_or(why))
    }

    fn look(&self, known: &mut Option<Known>) -> Result<MetadataValue<Ascii>, String> {
        let explain = |error: std::io::Error| format!("can't read {}: {error}", self.path.display());
        let about = std::fs::metadata(&self.path).map_err(explain)?;
        let changed = about.modified().map_err(explain)?;
        if let Some((when, size, value)) = known {
            if *when == changed && *size == about.len() {
                return Ok(value.clone());
            }
        }
        let value = parse_token(&self.path, &std::fs::read_to_string(&self.path).map_err(explain)?)?;
        *known = Some((changed, about.len(), value.clone()));
        Ok(value)
    }
}

/// The first line that is neither blank nor a comment (#); files have several tokens while tokens are replaced.
fn parse_token(path: &Path, content: &str) -> Result<MetadataValue<Ascii>, String> {
    let Some(token) = content.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')) else {
        return Err(format!("{} has no token", path.display()));
    };
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{} is not a token: it contains blanks or non-ASCII characters", path.display()));
    }
    let mut value = MetadataValue::try_from(format!("Bearer {token}")).map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_is_a_token() {
        let parse = |content| parse_token(Path::new("token"), content);
        for content in ["one", "\n one \r\ntwo\n", "# old\n\n  #older\none\ntwo\n"] {
            assert_eq!(parse(content).unwrap(), "Bearer one", "{content:?}");
        }
        for (content, says) in [("", "has no token"), ("\n# none\n", "has no token"), ("one two\n", "blanks")] {
            let why = parse(content).unwrap_err();
            assert!(why.contains(says), "{content:?}: {why}");
        }
    }

    #[test]
    fn a_file_without_a_token_leaves_the_last_one() {
        let path = std::env::temp_dir().join(format!("quantd-rust-{}.rotated", std::process::id()));
        let file = TokenFile { path: path.clone(), known: Mutex::new(None) };
        assert!(file.read().is_err());
        for (content, token) in [("first", "first"), ("", "first"), ("# soon\n", "first"), ("# new\nsecond\n", "second")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(file.read().unwrap(), format!("Bearer {token}").as_str(), "{content:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.read().unwrap(), "Bearer second");
    }
}
