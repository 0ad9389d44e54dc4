//! TuitBot as a server: posts, threads, media and figures of a platform over HTTP. Every tool's type
//! lists the codes that it may answer, and `manifest.json` is generated from these.
//!
//! `X_TOKEN=… cargo run -p faultwire --example tuitbot --features rmcp -- URL DIR [PROFILE]`
//!
//! URL is the platform. DIR holds `posts.db`, the `media`, the audit log, and `policy.json` if there
//! are rules. PROFILE is `api` or `workflow`. With `manifest` alone, it prints its manifest.

mod length;
mod platform;
mod rules;

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use faultwire::audit::{Log, Options};
use faultwire::contract::Meta;
use faultwire::tuitbot::{self as errors, Code};
use faultwire::{Boundary, Failure, Manifest, Widen};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::Deserialize;
use serde_json::json;

use platform::{Calling, Platform};
use rules::{Deciding, Rules};

// What posting, threads and uploads may end in.
faultwire::codes! {
    Posting of errors: Calling, Deciding { InvalidInput, TweetTooLong }
    Threading of errors: Posting { ThreadPartialFailure }
    Uploading of errors: Calling, Deciding { FileReadError, MediaUploadError, UnsupportedMediaType }
}

const LARGEST: u64 = 16 << 20;
const MEDIA: [&str; 5] = ["gif", "jpg", "mp4", "png", "webp"];

type Answer<Codes, T = String> = Result<T, Failure<Codes>>;

#[derive(Deserialize, schemars::JsonSchema)]
struct Compose {
    /// The text, at most 280 characters as the platform counts them.
    text: String,
    /// What `upload_media` answered.
    media_id: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Thread {
    /// The texts, in the order in which they are posted.
    #[schemars(length(min = 2))]
    texts: Vec<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Upload {
    /// The name of a file among the media.
    file: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Stats {
    /// The id of a tweet.
    #[schemars(extend("pattern" = "^[A-Za-z0-9]+$"))]
    id: String,
}

#[derive(Clone)]
struct TuitBot {
    platform: Platform,
    dir: PathBuf,
    tool_router: ToolRouter<Self>,
}

#[faultwire::manifest(requires(x_client, llm, db))]
#[tool_router]
impl TuitBot {
    #[tool(description = "Posts a tweet")]
    #[declare(category = "write", mutation, requires(x_client, db))]
    async fn compose(&self, Parameters(asked): Parameters<Compose>) -> Answer<Posting> {
        check(&asked.text)?;
        self.decide("compose", vec![asked.text.clone()]).await.widen()?;
        let tweet = json!({ "text": asked.text, "media_id": asked.media_id });
        Ok(json!({ "id": self.platform.post(&tweet).await.widen()? }).to_string())
    }

    #[tool(description = "Posts several tweets, each as a reply to the one before")]
    #[declare(category = "write", mutation, requires(x_client, db))]
    async fn thread(&self, Parameters(Thread { texts }): Parameters<Thread>) -> Answer<Threading> {
        texts.iter().try_for_each(|text| check(text)).widen()?;
        self.decide("thread", texts.clone()).await.widen()?;
        let mut posted: Vec<String> = Vec::new();
        for text in &texts {
            match self.platform.post(&json!({ "text": text, "reply_to": posted.last() })).await {
                Ok(id) => posted.push(id),
                // Nothing is posted yet, so it failed like a single tweet.
                Err(failure) if posted.is_empty() => return Err(failure.widen().into()),
                Err(failure) => return Err(broken_off(&posted, texts.len(), &failure)),
            }
        }
        Ok(json!({ "ids": posted }).to_string())
    }

    #[tool(description = "Uploads a picture or a film, for a tweet to come")]
    #[declare(category = "media", mutation, requires(x_client, db))]
    async fn upload_media(&self, Parameters(asked): Parameters<Upload>) -> Answer<Uploading> {
        let path = Path::new(&asked.file);
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if !MEDIA.contains(&extension.as_str()) {
            let what = format!("The platform takes {}, and no .{extension}", MEDIA.join(", "));
            return Err(errors::unsupported_media_type().message(what).into());
        }
        self.decide("upload_media", Vec::new()).await.widen()?;
        let bytes = media(&self.dir.join("media"), path);
        let bytes = bytes.map_err(|error| errors::file_read_error().cause(&error))?;
        Ok(json!({ "media_id": self.platform.upload(bytes).await? }).to_string())
    }

    #[tool(description = "Says how a tweet is doing", annotations(read_only_hint = true))]
    #[declare(category = "analytics", requires(x_client))]
    async fn stats(&self, Parameters(Stats { id }): Parameters<Stats>) -> Answer<Calling> {
        let figures = self.platform.figures(&id).await?;
        Ok(json!({ "id": id, "likes": figures["likes"], "views": figures["views"] }).to_string())
    }

    /// Whether the operator's rules allow it. Databases block, so this runs on a blocking thread.
    async fn decide(&self, tool: &'static str, texts: Vec<String>) -> Answer<Deciding, ()> {
        let dir = self.dir.clone();
        let decided = tokio::task::spawn_blocking(move || {
            let rules = Rules::read(&dir.join("policy.json"))?;
            rules.allow(tool, &texts)?;
            rules.reserve(&dir.join("posts.db"), &texts)
        });
        decided.await?
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for TuitBot {}

/// A file among the media. Nothing leads out of them, links included.
fn media(dir: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let found = dir.join(path).canonicalize()?;
    let fits = found.is_file() && found.metadata()?.len() <= LARGEST;
    if !fits || !found.starts_with(dir.canonicalize()?) {
        return Err(ErrorKind::InvalidInput.into());
    }
    std::fs::read(found)
}

/// Whether the platform would take the text.
fn check(text: &str) -> Result<(), Failure<Posting>> {
    if text.trim().is_empty() {
        return Err(errors::invalid_input().message("A tweet has a text").into());
    }
    let length = length::weighted(text);
    if length > length::MOST {
        let what = format!("The tweet has {length} weighted characters, of {}", length::MOST);
        return Err(errors::tweet_too_long().message(what).into());
    }
    Ok(())
}

/// Some tweets are posted and the next one failed: these must not be posted again.
fn broken_off(posted: &[String], of: usize, failure: &Failure<Calling>) -> Failure<Threading> {
    let cause = json!({ "code": failure.code().id(), "message": failure.report().message });
    let kept = json!({ "ids": posted, "failed_at": posted.len() });
    let broken_off = errors::thread_partial_failure().cause_value(cause).keeping(kept);
    broken_off.message(format!("{} of {of} tweets are out", posted.len())).into()
}

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "a program reads its environment here")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["manifest"] {
        io::stdout().write_all(Manifest::of::<TuitBot>().to_json().as_bytes())?;
        return Ok(());
    }
    let [url, dir, profile @ ..] = &arguments[..] else {
        return Err("usage: tuitbot URL DIR [api|workflow]".into());
    };
    let dir = PathBuf::from(dir);
    let profile = errors::contract().profile(profile.first().map_or("api", String::as_str));
    let profile = profile.ok_or("the profile is api or workflow")?;
    let rules = Rules::read(&dir.join("policy.json"));
    let meta = Meta {
        tool_version: Some("1.0".to_owned()),
        mode: Some("composer".to_owned()),
        approval_mode: Some(rules.is_ok_and(|rules| !rules.approve.is_empty())),
        ..Meta::default()
    };
    let http = reqwest::Client::builder().timeout(Duration::from_secs(2)).no_proxy().build()?;
    let url = url.trim_end_matches('/').to_owned();
    let platform = Platform { http, url, token: std::env::var("X_TOKEN").ok() };
    let log = Log::open(dir.join("audit"), Options::default())?;
    let bot = TuitBot { platform, dir, tool_router: TuitBot::tool_router() };
    let server = Boundary::<Code, _>::new(bot, log).profile(profile).meta(meta);
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
