//! The platform, over HTTP, and what its answers mean.

use faultwire::contract::Reset;
use faultwire::tuitbot as errors;
use faultwire::{Failure, Widen};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::Uploading;

faultwire::codes! {
    /// What any call of the platform may end in.
    pub Calling of errors {
        NotFound, SerializationError, XAccountRestricted, XApiError, XAuthExpired, XForbidden,
        XNetworkError, XNotConfigured, XRateLimited,
    }
}

/// The platform, as one account sees it.
#[derive(Clone)]
pub struct Platform {
    pub http: Client,
    pub url: String,
    pub token: Option<String>,
}

impl Platform {
    /// Posts a tweet, and answers its id.
    pub async fn post(&self, tweet: &Value) -> Result<String, Failure<Calling>> {
        let request = self.http.post(format!("{}/tweets", self.url));
        let request = request.header("content-type", "application/json").body(tweet.to_string());
        id(&self.ask(request).await?)
    }

    /// The figures of a tweet.
    pub async fn figures(&self, id: &str) -> Result<Value, Failure<Calling>> {
        self.ask(self.http.get(format!("{}/tweets/{id}/figures", self.url))).await
    }

    /// Uploads a file, and answers its id. What is wrong with the file itself has its own code.
    pub async fn upload(&self, bytes: Vec<u8>) -> Result<String, Failure<Uploading>> {
        let answer = self.ask(self.http.post(format!("{}/media", self.url)).body(bytes)).await;
        if answer.as_ref().is_err_and(|failure| failure.code() == errors::Code::XApiError) {
            return Err(errors::media_upload_error().into());
        }
        Ok(id(&answer.widen()?).widen()?)
    }

    /// What the platform answers, or what its status means.
    async fn ask(&self, request: RequestBuilder) -> Result<Value, Failure<Calling>> {
        let lost = |error: reqwest::Error| errors::x_network_error().cause(&error);
        let token = self.token.as_ref().ok_or_else(errors::x_not_configured)?;
        let response = request.bearer_auth(token).send().await.map_err(lost)?;
        let status = response.status();
        let reset = response.headers().get("x-rate-limit-reset");
        let reset = reset.and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        let body = response.bytes().await.map_err(lost)?;
        let answer = serde_json::from_slice::<Value>(&body);
        if status.is_success() {
            return Ok(answer.map_err(|error| errors::serialization_error().cause(&error))?);
        }
        let title = answer.map_or(Value::Null, |answer| answer["title"].clone());
        Err(match (status.as_u16(), reset) {
            (401, _) => errors::x_auth_expired().into(),
            (403, _) if title == "account_suspended" => errors::x_account_restricted().into(),
            (403, _) => errors::x_forbidden().into(),
            (404, _) => errors::not_found().into(),
            (429, None) => errors::x_rate_limited().into(),
            (429, Some(at)) => errors::x_rate_limited().resets_at(Reset::Epoch(at.into())).into(),
            _ => {
                let what = format!("The platform answered {status}");
                errors::x_api_error().message(what).cause_value(title).into()
            }
        })
    }
}

fn id(answer: &Value) -> Result<String, Failure<Calling>> {
    let id = answer["id"].as_str().map(str::to_owned);
    Ok(id.ok_or_else(|| errors::serialization_error().message("The platform named no id"))?)
}
