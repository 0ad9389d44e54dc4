//! TuitBot as a server: posts, threads, media and figures of a platform that is reached over HTTP.
//! Every tool says in its type what it may answer, and `manifest.json` is made of that.
//!
//! `X_TOKEN=… cargo run -p faultwire --example tuitbot --features rmcp -- URL DIR [PROFILE]`
//!
//! URL is the platform. DIR holds `posts.db`, the `media` that may be uploaded, a `policy.json` if
//! there are rules, and the audit log. PROFILE is `api` or `workflow`. With `manifest` in place of
//! all that, it prints its manifest.

mod length;
mod platform;
mod policy;
mod posts;

use std::io::Write;
use std::path::{Path, PathBuf};

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
use policy::{Deciding, Policy};
use posts::Posts;

faultwire::codes! {
    /// What posting may end in.
    Posting of errors: Calling, Deciding { InvalidInput, TweetTooLong }
    /// What posting a thread may end in.
    Threading of errors: Posting { ThreadPartialFailure }
    /// What looking up figures may end in.
    Looking of errors: Calling { InvalidInput }
    /// What an upload may end in.
    Uploading of errors: Calling, Deciding { FileReadError, MediaUploadError, UnsupportedMediaType }
}

/// Larger files are not uploaded.
const LARGEST: u64 = 16 << 20;
/// What the platform takes.
const MEDIA: [&str; 5] = ["gif", "jpg", "mp4", "png", "webp"];

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
    async fn compose(
        &self,
        Parameters(Compose { text, media_id }): Parameters<Compose>,
    ) -> Result<String, Failure<Posting>> {
        check(&text)?;
        self.decide("compose", vec![text.clone()]).await.widen()?;
        let id = self.platform.post(&text, None, media_id.as_deref()).await.widen()?;
        Ok(json!({ "id": id }).to_string())
    }

    #[tool(description = "Posts several tweets, each as a reply to the one before")]
    #[declare(category = "write", mutation, requires(x_client, db))]
    async fn thread(
        &self,
        Parameters(Thread { texts }): Parameters<Thread>,
    ) -> Result<String, Failure<Threading>> {
        if texts.len() < 2 {
            return Err(errors::invalid_input().message("A thread has two tweets or more").into());
        }
        for text in &texts {
            check(text).widen()?;
        }
        self.decide("thread", texts.clone()).await.widen()?;
        let mut posted: Vec<String> = Vec::new();
        for text in &texts {
            let last = posted.last().map(String::as_str);
            let id = match self.platform.post(text, last, None).await {
                Ok(id) => id,
                // Nothing is out yet: it failed like any tweet.
                Err(failure) if posted.is_empty() => return Err(failure.widen().into()),
                Err(failure) => return Err(broken_off(&posted, &texts, &failure)),
            };
            posted.push(id);
        }
        Ok(json!({ "ids": posted }).to_string())
    }

    #[tool(description = "Uploads a picture or a film, for a tweet to come")]
    #[declare(category = "media", mutation, requires(x_client, db))]
    async fn upload_media(
        &self,
        Parameters(Upload { file }): Parameters<Upload>,
    ) -> Result<String, Failure<Uploading>> {
        let path = Path::new(&file);
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if !MEDIA.contains(&extension.as_str()) {
            let what = format!("The platform takes {}, and no .{extension}", MEDIA.join(", "));
            return Err(errors::unsupported_media_type().message(what).into());
        }
        self.decide("upload_media", Vec::new()).await.widen()?;
        let bytes = media(&self.dir.join("media"), path)?;
        let id = self.platform.upload(bytes).await?;
        Ok(json!({ "media_id": id }).to_string())
    }

    #[tool(description = "Says how a tweet is doing", annotations(read_only_hint = true))]
    #[declare(category = "analytics", requires(x_client))]
    async fn stats(
        &self,
        Parameters(Stats { id }): Parameters<Stats>,
    ) -> Result<String, Failure<Looking>> {
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(errors::invalid_input().message("That is no id of a tweet").into());
        }
        let figures = self.platform.figures(&id).await.widen()?;
        Ok(json!({ "id": id, "likes": figures["likes"], "views": figures["views"] }).to_string())
    }

    /// Whether the operator's rules allow it. Databases keep us waiting, on a thread that may.
    async fn decide(
        &self,
        tool: &'static str,
        texts: Vec<String>,
    ) -> Result<(), Failure<Deciding>> {
        let dir = self.dir.clone();
        let decided = tokio::task::spawn_blocking(move || {
            let policy = Policy::read(&dir.join("policy.json"))?;
            policy.allows(tool, &texts.join("\n"))?;
            Posts::open(&dir.join("posts.db"))?.reserve(&texts, policy.most_an_hour())
        });
        decided.await?
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for TuitBot {}

/// A file among the media. Nothing leads out of them, links included.
fn media(dir: &Path, path: &Path) -> Result<Vec<u8>, Failure<Uploading>> {
    let unreadable = |error: std::io::Error| errors::file_read_error().cause(&error);
    let found = dir.join(path).canonicalize().map_err(unreadable)?;
    let dir = dir.canonicalize().map_err(unreadable)?;
    let about = std::fs::metadata(&found).map_err(unreadable)?;
    if !found.starts_with(dir) || !about.is_file() || about.len() > LARGEST {
        let what = "That is no plain file among the media, or too large";
        return Err(errors::file_read_error().message(what).into());
    }
    Ok(std::fs::read(found).map_err(unreadable)?)
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

/// Some tweets are out, and the next one failed: what there is must not be posted again.
fn broken_off(
    posted: &[String],
    texts: &[String],
    failure: &Failure<Calling>,
) -> Failure<Threading> {
    let what = format!("{} of {} tweets are out", posted.len(), texts.len());
    let cause = json!({ "code": failure.code().id(), "message": failure.report().message });
    let kept = json!({ "ids": posted, "failed_at": posted.len() });
    errors::thread_partial_failure().message(what).cause_value(cause).keeping(kept).into()
}

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "a program reads its environment here")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["manifest"] {
        std::io::stdout().write_all(Manifest::of::<TuitBot>().to_json().as_bytes())?;
        return Ok(());
    }
    let [url, dir, profile @ ..] = &arguments[..] else {
        return Err("usage: tuitbot URL DIR [api|workflow]".into());
    };
    let dir = PathBuf::from(dir);
    let contract = errors::contract();
    let profile = profile.first().map_or("api", String::as_str);
    let profile = contract.profile(profile).ok_or("the profile is api or workflow")?;
    let meta = Meta {
        tool_version: Some("1.0".to_owned()),
        mode: Some("composer".to_owned()),
        approval_mode: Some(Policy::read(&dir.join("policy.json")).is_ok_and(|it| it.asks())),
        ..Meta::default()
    };
    let platform = Platform::new(url, std::env::var("X_TOKEN").ok())?;
    let log = Log::open(dir.join("audit"), Options::default())?;
    let bot = TuitBot { platform, dir, tool_router: TuitBot::tool_router() };
    let server = Boundary::<Code, _>::new(bot, log).profile(profile).meta(meta);
    server.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
