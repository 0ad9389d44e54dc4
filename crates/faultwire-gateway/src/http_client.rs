//! Connecting to servers over HTTP and TLS.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::body::Body;
use crate::endpoint::RemoteError;

/// How long a server may take to accept a connection.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long an unused connection to another server is kept.
const KEPT: Duration = Duration::from_mins(1);

/// Connections to other servers, which are used again.
pub(crate) type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

/// Connects to servers whose certificates are good, by the usual authorities and these.
pub(crate) fn https_client(trust: Option<&[u8]>) -> Result<HttpsClient, RemoteError> {
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .build(connector(trust)?))
}

/// Makes the connections themselves.
pub(crate) fn connector(
    trust: Option<&[u8]>,
) -> Result<HttpsConnector<HttpConnector>, RemoteError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECTING));
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls(trust)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http))
}

fn tls(trust: Option<&[u8]>) -> Result<ClientConfig, RemoteError> {
    let config = ClientConfig::builder();
    let Some(trust) = trust else {
        return Ok(config.with_webpki_roots().with_no_client_auth());
    };
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(trust) {
        let certificate = certificate.map_err(|_| RemoteError::Trust)?;
        roots.add(certificate).map_err(|_| RemoteError::Trust)?;
    }
    if roots.len() == before {
        return Err(RemoteError::Trust);
    }
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The next piece of a body.
pub(crate) async fn next_data(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers are of no use here.
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}
