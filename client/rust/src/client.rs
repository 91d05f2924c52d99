//! Client: the generated stub with retries, deadlines and errors that name fields.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::address::Target;
use crate::credentials::{Credentials, Token};
use crate::v1::quantization_service_client::QuantizationServiceClient;
use crate::{connection, retry, v1, Error};

/// The generated stub, over a channel that adds the token.
pub type Stub = QuantizationServiceClient<InterceptedService<Channel, Token>>;

/// A connection to one address, which may be several servers. A clone is the same connection.
///
/// A call is cancelled when its future is dropped.
#[derive(Clone)]
pub struct Client {
    stub: Stub,
    timeout: Option<Duration>,
}

impl Client {
    /// A client of host:port, host (port 50051), unix:/path.sock or dns:///host:port (all servers of the name, those with
    /// the fewest calls first); for "", of QUANTD_ADDRESS or else 127.0.0.1:50051. It does not wait for the server: the
    /// first call reports what is wrong with it.
    ///
    /// TLS and token: the files that the environment names, see [`Credentials`]. Call it in a tokio runtime.
    pub async fn connect(address: &str) -> Result<Client, Error> {
        Client::connect_with(address, &Credentials::from_environment()).await
    }

    /// The same, with exactly these files.
    pub async fn connect_with(address: &str, credentials: &Credentials) -> Result<Client, Error> {
        let target = Target::parse(address)?;
        let tls = credentials.tls()?;
        let token = credentials.token(tls.is_some() || target.is_local())?;
        let channel = connection::channel(&target, tls).await?;
        let stub = QuantizationServiceClient::with_interceptor(channel, token)
            // The server has the limit (--max_message_bytes); tonic's own, 4 MiB, is below many tensors.
            .max_decoding_message_size(i32::MAX as usize)
            .max_encoding_message_size(i32::MAX as usize);
        Ok(Client::with_stub(stub))
    }

    /// A client over a given stub.
    pub fn with_stub(stub: Stub) -> Client {
        Client { stub, timeout: None }
    }

    /// The same connection; each call, including its retries, takes at most this long, and then ends with DEADLINE_EXCEEDED.
    pub fn with_timeout(&self, timeout: Duration) -> Client {
        Client { stub: self.stub.clone(), timeout: Some(timeout) }
    }

    /// The generated stub, for metadata and everything that has no method here. It does not retry.
    pub fn stub(&self) -> Stub {
        self.stub.clone()
    }

    /// Computes y from x, scale and zero point.
    pub async fn quantize(&self, request: v1::QuantizeRequest) -> Result<v1::QuantizeResponse, Error> {
        self.call(request, |mut stub, request| async move { stub.quantize(request).await }).await
    }

    /// The inverse of quantize.
    pub async fn dequantize(&self, request: v1::DequantizeRequest) -> Result<v1::DequantizeResponse, Error> {
        self.call(request, |mut stub, request| async move { stub.dequantize(request).await }).await
    }

    /// Finds scale and zero point in the data, then quantizes.
    pub async fn dynamic_quantize(&self, request: v1::DynamicQuantizeRequest) -> Result<v1::DynamicQuantizeResponse, Error> {
        self.call(request, |mut stub, request| async move { stub.dynamic_quantize(request).await }).await
    }

    /// Encodes embeddings in the formats of vector databases.
    pub async fn quantize_embeddings(
        &self,
        request: v1::QuantizeEmbeddingsRequest,
    ) -> Result<v1::QuantizeEmbeddingsResponse, Error> {
        self.call(request, |mut stub, request| async move { stub.quantize_embeddings(request).await }).await
    }

    /// The server's version, instruction set and limits.
    pub async fn server_info(&self) -> Result<v1::GetServerInfoResponse, Error> {
        self.call(v1::GetServerInfoRequest {}, |mut stub, request| async move { stub.get_server_info(request).await }).await
    }

    /// Any mix of these four. Answers arrive in any order with their request's id; an item that fails does not affect others, and
    /// becomes an [`Error`]. Not retried, and the timeout is only for the first answer's headers.
    pub async fn stream(
        &self,
        requests: impl Stream<Item = v1::StreamRequest> + Send + 'static,
    ) -> Result<Streaming<v1::StreamResponse>, Error> {
        let mut stub = self.stub.clone();
        let opened = stub.stream(requests);
        match self.timeout {
            None => Ok(opened.await?.into_inner()),
            Some(timeout) => match tokio::time::timeout(timeout, opened).await {
                Ok(answer) => Ok(answer?.into_inner()),
                Err(_) => Err(too_late(timeout)),
            },
        }
    }

    /// Copies of a message share the tensors' bytes, so an attempt copies none.
    async fn call<Q: Clone, A, F>(&self, message: Q, send: impl Fn(Stub, Request<Q>) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = self.timeout.map(|timeout| (timeout, Instant::now() + timeout));
        let mut attempt = 1;
        loop {
            let mut request = Request::new(message.clone());
            let answer = match deadline {
                None => send(self.stub.clone(), request).await,
                Some((timeout, end)) => {
                    // The server is told, so that it does not compute for nobody; the attempts may end in any order.
                    request.set_timeout(end.saturating_duration_since(Instant::now()));
                    match tokio::time::timeout_at(end, send(self.stub.clone(), request)).await {
                        Ok(Err(status)) if Instant::now() >= end && status.code() == Code::Cancelled => {
                            return Err(too_late(timeout));
                        }
                        Ok(answer) => answer,
                        Err(_) => return Err(too_late(timeout)),
                    }
                }
            };
            let error = match answer {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) => Error::from(status),
            };
            let Some(wait) = retry::wait_after(&error, attempt) else {
                return Err(error);
            };
            if deadline.is_some_and(|(_, end)| Instant::now() + wait >= end) {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }
}

fn too_late(timeout: Duration) -> Error {
    Error::new(Code::DeadlineExceeded, format!("no answer within {timeout:?}"))
}
