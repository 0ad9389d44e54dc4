//! What a load costs, as a supplier says.

use faultwire::owlclaw::{self as errors, Failure};
use rmcp::schemars;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, schemars::JsonSchema)]
pub struct Wanted {
    /// How much is shipped.
    pub tons: u32,
    /// The version of this capability that is meant.
    pub version: Option<String>,
}

#[derive(Serialize)]
pub struct Quote {
    pub tons: u32,
    pub price: f64,
}

pub struct Supplier {
    url: String,
    http: reqwest::Client,
}

impl Supplier {
    pub fn new(url: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { url: url.trim_end_matches('/').to_owned(), http })
    }

    /// The boundary notices a supplier that takes too long.
    pub async fn quote(&self, wanted: &Wanted) -> Result<Quote, Failure> {
        let away = |error: reqwest::Error| {
            errors::dependency_unavailable().message("The supplier is away").cause(&error)
        };
        let answer = self.http.get(format!("{}/{}", self.url, wanted.tons)).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).map_err(away)?;
        let price = answer.text().await.map_err(away)?;
        // A supplier that sends no price has changed its API.
        let price: f64 = price.trim().parse()?;
        if !price.is_finite() || price < 0.0 {
            return Err(errors::internal_unexpected()
                .message("The supplier's price is none")
                .into());
        }
        Ok(Quote { tons: wanted.tons, price })
    }
}
