//! The platform, over HTTP, and what its answers mean.

use std::time::Duration;

use faultwire::contract::Reset;
use faultwire::tuitbot::{self as errors, Code};
use faultwire::{Failure, Widen};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::Uploading;

faultwire::codes! {
    /// What any call of the platform may end in.
    pub Calling of errors {
        NotFound, SerializationError, XAccountRestricted, XApiError, XAuthExpired, XForbidden,
        XNetworkError, XNotConfigured, XRateLimited,
    }
}

/// How long the platform may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The platform, as one account sees it.
#[derive(Clone)]
pub struct Platform {
    url: String,
    token: Option<String>,
    http: Client,
}

impl Platform {
    pub fn new(url: &str, token: Option<String>) -> Result<Self, reqwest::Error> {
        let http = Client::builder().timeout(PATIENCE).no_proxy().build()?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), token, http })
    }

    /// Posts a tweet, and answers its id.
    pub async fn post(
        &self,
        text: &str,
        reply_to: Option<&str>,
        media: Option<&str>,
    ) -> Result<String, Failure<Calling>> {
        let body = json!({ "text": text, "reply_to": reply_to, "media_id": media });
        let request = self.http.post(format!("{}/tweets", self.url));
        let request = request.header("content-type", "application/json").body(body.to_string());
        id(&self.ask(request).await?)
    }

    /// The figures of a tweet.
    pub async fn figures(&self, id: &str) -> Result<Value, Failure<Calling>> {
        self.ask(self.http.get(format!("{}/tweets/{id}/figures", self.url))).await
    }

    /// Uploads a file, and answers its id. What is wrong with the file itself has its own code.
    pub async fn upload(&self, bytes: Vec<u8>) -> Result<String, Failure<Uploading>> {
        let request = self.http.post(format!("{}/media", self.url));
        let response = self.send(request.body(bytes)).await.widen()?;
        let status = response.status();
        match read(response).await {
            Ok(answer) => Ok(id(&answer).widen()?),
            Err(failure) if failure.code() == Code::XApiError => {
                let what = format!("The platform answered {status} to the file");
                Err(errors::media_upload_error().message(what).into())
            }
            Err(failure) => Err(failure.widen().into()),
        }
    }

    async fn ask(&self, request: RequestBuilder) -> Result<Value, Failure<Calling>> {
        read(self.send(request).await?).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure<Calling>> {
        let token = self.token.as_ref().ok_or_else(errors::x_not_configured)?;
        let sent = request.bearer_auth(token).send().await;
        sent.map_err(|error| unreachable(&error))
    }
}

/// What the platform answered, or what its status means.
async fn read(response: Response) -> Result<Value, Failure<Calling>> {
    let status = response.status();
    let reset = response.headers().get("x-rate-limit-reset");
    let reset = reset.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let body = response.bytes().await.map_err(|error| unreachable(&error))?;
    let json = serde_json::from_slice::<Value>(&body);
    let title = json.as_ref().ok().and_then(|json| json["title"].as_str()).unwrap_or_default();
    match status {
        status if status.is_success() => {
            Ok(json.map_err(|error| errors::serialization_error().cause(&error))?)
        }
        StatusCode::UNAUTHORIZED => Err(errors::x_auth_expired().into()),
        StatusCode::FORBIDDEN if title == "account_suspended" => {
            Err(errors::x_account_restricted().into())
        }
        StatusCode::FORBIDDEN => Err(errors::x_forbidden().into()),
        StatusCode::NOT_FOUND => Err(errors::not_found().into()),
        StatusCode::TOO_MANY_REQUESTS => {
            let limited = errors::x_rate_limited();
            Err(match reset {
                Some(reset) => limited.resets_at(Reset::Epoch(reset.into())).into(),
                None => limited.into(),
            })
        }
        other => {
            let what = format!("The platform answered {other}");
            Err(errors::x_api_error().message(what).cause_value(title.into()).into())
        }
    }
}

/// No answer, or half of one. Its address is nobody's business.
fn unreachable(error: &reqwest::Error) -> Failure<Calling> {
    let what = if error.is_timeout() { "did not answer in time" } else { "cannot be reached" };
    errors::x_network_error().message(format!("The platform {what}")).cause(error).into()
}

fn id(answer: &Value) -> Result<String, Failure<Calling>> {
    let id = answer["id"].as_str().map(str::to_owned);
    Ok(id.ok_or_else(|| errors::serialization_error().message("The platform named no id"))?)
}
