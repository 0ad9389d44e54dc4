//! TuitBot, before a platform that limits, expires, hangs and breaks: each code that its tools can
//! answer, by what really happens.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::examples::{Example, program, text};
use crate::support::Dir;

/// A platform on this machine.
#[derive(Default)]
struct Platform {
    posted: AtomicU32,
    /// After so many tweets it takes no more; 0 is no limit.
    limit: AtomicU32,
    /// It breaks at this tweet.
    breaks_at: AtomicU32,
}

impl Platform {
    async fn start() -> (Arc<Self>, String) {
        let platform = Arc::new(Self::default());
        let routes = Router::new()
            .route("/tweets", post(tweet))
            .route("/tweets/{id}/figures", get(figures))
            .route("/media", post(media))
            .with_state(Arc::clone(&platform));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (platform, url)
    }
}

/// What is wrong with an account.
fn refused(headers: &HeaderMap) -> Option<Response> {
    let token = headers["authorization"].to_str().unwrap().strip_prefix("Bearer ");
    Some(match token {
        Some("good") => return None,
        Some("reader") => StatusCode::FORBIDDEN.into_response(),
        Some("suspended") => {
            let body = json!({ "title": "account_suspended" }).to_string();
            (StatusCode::FORBIDDEN, body).into_response()
        }
        _ => StatusCode::UNAUTHORIZED.into_response(),
    })
}

async fn tweet(State(it): State<Arc<Platform>>, headers: HeaderMap, body: String) -> Response {
    if let Some(refused) = refused(&headers) {
        return refused;
    }
    let asked: Value = serde_json::from_str(&body).unwrap();
    match asked["text"].as_str().unwrap() {
        "slow" => std::future::pending().await,
        "garbled" => return "<html>all is well</html>".into_response(),
        _ => {}
    }
    let limit = it.limit.load(Ordering::Relaxed);
    if limit > 0 && it.posted.load(Ordering::Relaxed) >= limit {
        let reset = [("x-rate-limit-reset", "4102444800")];
        return (StatusCode::TOO_MANY_REQUESTS, reset).into_response();
    }
    let number = it.posted.fetch_add(1, Ordering::Relaxed) + 1;
    if number == it.breaks_at.load(Ordering::Relaxed) {
        return (StatusCode::BAD_GATEWAY, "at 10.0.0.7 /srv/app.py").into_response();
    }
    json!({ "id": format!("t{number}"), "in_reply_to": asked["reply_to"] })
        .to_string()
        .into_response()
}

async fn figures(Path(id): Path<String>, headers: HeaderMap) -> Response {
    match refused(&headers) {
        Some(refused) => refused,
        None if id == "t1" => json!({ "likes": 3, "views": 40 }).to_string().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn media(headers: HeaderMap, body: axum::body::Bytes) -> Response {
    match refused(&headers) {
        Some(refused) => refused,
        None if body.starts_with(b"GIF8") => json!({ "id": "m1" }).to_string().into_response(),
        None => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
    }
}

/// TuitBot, and all that it has answered.
struct Bot {
    example: Example,
    dir: Dir,
    seen: BTreeSet<(&'static str, String)>,
}

impl Bot {
    async fn start(url: &str, token: Option<&str>, profile: &str) -> Self {
        let dir = Dir::new();
        fs::create_dir_all(dir.path().join("media")).unwrap();
        let root = dir.path().to_str().unwrap();
        let token: Vec<_> = token.map(|token| ("X_TOKEN", token)).into_iter().collect();
        let example = Example::start_with("tuitbot", &[url, root, profile], &token).await;
        Self { example, dir, seen: BTreeSet::new() }
    }

    /// What a call is answered.
    async fn ask(&mut self, tool: &'static str, arguments: Value) -> Value {
        let result = self.example.call(tool, arguments).await;
        let answer: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(result.is_error == Some(true), answer["success"] == false, "T7: {answer}");
        answer
    }

    async fn fails(&mut self, tool: &'static str, arguments: Value, code: &str) -> Value {
        let answer = self.ask(tool, arguments).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(!answer.to_string().contains("10.0.0.7"), "{answer}");
        self.seen.insert((tool, code.to_owned()));
        answer
    }

    async fn compose_fails(&mut self, text: &str, code: &str) -> Value {
        self.fails("compose", json!({ "text": text }), code).await
    }

    fn rules(&self, rules: &Value) {
        fs::write(self.dir.path().join("policy.json"), rules.to_string()).unwrap();
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one row a condition")]
async fn t1_t2_t3_each_code_of_the_domain_is_answered_when_it_is_so() {
    let (platform, url) = Platform::start().await;
    let mut bot = Bot::start(&url, Some("good"), "api").await;
    let posted = bot.ask("compose", json!({ "text": "Ahoy" })).await;
    assert_eq!(posted["data"], json!({ "id": "t1" }));
    let figures = bot.ask("stats", json!({ "id": "t1" })).await;
    assert_eq!(figures["data"], json!({ "id": "t1", "likes": 3, "views": 40 }));

    bot.fails("stats", json!({ "id": "t99" }), "not_found").await;
    bot.fails("stats", json!({}), "validation_error").await;
    for id in ["", "t-1", "../t1", "t1/figures?"] {
        bot.fails("stats", json!({ "id": id }), "validation_error").await;
    }
    bot.fails("thread", json!({ "texts": ["alone"] }), "invalid_input").await;
    bot.compose_fails(" \n", "invalid_input").await;
    bot.compose_fails(&"a".repeat(281), "tweet_too_long").await;
    bot.compose_fails(&format!("a{}", " ".repeat(280)), "tweet_too_long").await;
    bot.compose_fails("slow", "x_network_error").await;
    bot.compose_fails("garbled", "serialization_error").await;

    let mut spam = String::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        spam += &format!("@{name} ");
    }
    let denied = bot.compose_fails(&spam, "policy_denied_hard_rule").await;
    assert_eq!(denied["error"]["policy_decision"], "denied");
    bot.rules(&json!({ "blocked": ["thread"], "approve": ["upload_media"], "words": ["Soup"] }));
    bot.fails("thread", json!({ "texts": ["a", "b"] }), "policy_denied_blocked").await;
    bot.compose_fails("I like soup", "policy_denied_user_rule").await;
    fs::write(bot.dir.path().join("media/a.gif"), "GIF89a").unwrap();
    let gif = json!({ "file": "a.gif" });
    let routed = bot.fails("upload_media", gif.clone(), "policy_denied_blocked").await;
    assert_eq!(routed["error"]["policy_decision"], "routed_to_approval");
    bot.rules(&json!({ "hourly": 8 }));
    let many: Vec<_> = (0..9).map(|number| number.to_string()).collect();
    bot.fails("thread", json!({ "texts": many }), "policy_denied_rate_limited").await;
    bot.rules(&json!({ "hourly": 1 }));
    bot.compose_fails("once more", "policy_denied_rate_limited").await;
    bot.rules(&json!({ "hourly": "many" }));
    let unclear = bot.compose_fails("once more", "policy_error").await;
    assert_eq!(unclear["error"]["retryable"], true);
    bot.rules(&json!({}));

    let media = bot.dir.path().join("media");
    fs::write(media.join("b.png"), "no picture").unwrap();
    fs::create_dir(media.join("dir.png")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", media.join("out.png")).unwrap();
    let uploaded = bot.ask("upload_media", gif).await;
    assert_eq!(uploaded["data"], json!({ "media_id": "m1" }));
    for (file, code) in [
        ("a.exe", "unsupported_media_type"),
        ("none.png", "file_read_error"),
        ("../../etc/a.png", "file_read_error"),
        ("out.png", "file_read_error"),
        ("dir.png", "file_read_error"),
        ("b.png", "media_upload_error"),
    ] {
        bot.fails("upload_media", json!({ "file": file }), code).await;
    }

    // It breaks at its third tweet from here: two are out.
    platform.breaks_at.store(4, Ordering::Relaxed);
    let thread = json!({ "texts": ["one", "two", "three"] });
    let partly = bot.fails("thread", thread, "thread_partial_failure").await;
    assert_eq!(partly["data"], json!({ "ids": ["t2", "t3"], "failed_at": 2 }));
    assert_eq!(partly["error"]["retryable"], true);
    platform.breaks_at.store(5, Ordering::Relaxed);
    let api = bot.compose_fails("five", "x_api_error").await;
    assert_eq!(api["error"]["message"], "The platform answered 502 Bad Gateway");
    platform.limit.store(5, Ordering::Relaxed);
    let limited = bot.compose_fails("six", "x_rate_limited").await;
    assert_eq!(limited["error"]["rate_limit_reset"], 4_102_444_800_u64);
    let whole = json!({ "texts": ["one", "two"] });
    let limited = bot.fails("thread", whole, "x_rate_limited").await;
    assert_eq!(limited["data"], Value::Null, "nothing is out");
    platform.limit.store(0, Ordering::Relaxed);

    fs::write(bot.dir.path().join("posts.db"), "no database at all, but long enough").unwrap();
    bot.compose_fails("seven", "db_error").await;

    let mut seen = bot.seen;
    for (token, code) in [
        (Some("old"), "x_auth_expired"),
        (Some("reader"), "x_forbidden"),
        (Some("suspended"), "x_account_restricted"),
        (None, "x_not_configured"),
    ] {
        let mut bot = Bot::start(&url, token, "api").await;
        bot.compose_fails("Ahoy", code).await;
        bot.fails("stats", json!({ "id": "t1" }), code).await;
        seen.extend(bot.seen);
    }
    let mut lost = Bot::start("http://127.0.0.1:9", Some("good"), "api").await;
    lost.compose_fails("Ahoy", "x_network_error").await;

    // T6: whatever was answered is declared, and all that composing declares was answered.
    let manifest = include_str!("../../../examples/tuitbot/manifest.json");
    let manifest: Value = serde_json::from_str(manifest).unwrap();
    let declared: BTreeSet<(&str, &str)> = manifest["tools"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|tool| {
            let codes = tool["possible_error_codes"].as_array().unwrap();
            codes.iter().map(|code| (tool["name"].as_str().unwrap(), code.as_str().unwrap()))
        })
        .collect();
    for (tool, code) in &seen {
        assert!(declared.contains(&(*tool, code.as_str())), "{tool} {code}");
    }
    let codes: BTreeSet<&str> = seen.iter().map(|(_, code)| code.as_str()).collect();
    let unseen: Vec<_> = declared.iter().filter(|(_, code)| !codes.contains(code)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn t6_the_committed_manifest_is_what_the_server_says() {
    let said = std::process::Command::new(program("tuitbot")).arg("manifest").output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let committed = include_str!("../../../examples/tuitbot/manifest.json");
    assert_eq!(said, committed, "tuitbot manifest > examples/tuitbot/manifest.json updates it");
}

#[tokio::test]
async fn t5_meta_is_that_of_the_profile_on_every_path() {
    let (_, url) = Platform::start().await;
    for (profile, shows) in [("api", false), ("workflow", true)] {
        let mut bot = Bot::start(&url, Some("good"), profile).await;
        for arguments in [json!({ "text": "Ahoy" }), json!({ "text": "" }), json!({ "txt": 1 })] {
            let answer = bot.ask("compose", arguments).await;
            let meta = answer["meta"].as_object().unwrap();
            assert_eq!(meta["tool_version"], "1.0");
            assert!(meta["elapsed_ms"].is_u64());
            assert_eq!(meta.get("mode").is_some(), shows, "{answer}");
            assert_eq!(meta.get("approval_mode"), shows.then_some(&json!(false)), "{answer}");
        }
    }
}

#[tokio::test]
async fn texts_are_as_long_as_the_platform_counts_them() {
    let (_, url) = Platform::start().await;
    let mut bot = Bot::start(&url, Some("good"), "api").await;
    for (text, length) in [
        ("Ahoy", 4),
        ("Grüße", 5),
        ("e\u{301}", 1),
        ("港", 2),
        ("안녕", 4),
        ("\u{2014}", 1),
        ("👍", 2),
        ("👨‍👩‍👧‍👦", 2),
        ("👍🏽", 2),
        ("🇫🇷", 2),
        ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", 2),
        ("ẞ", 2),
        ("©", 1),
        ("©\u{fe0f}", 2),
        ("1️⃣", 2),
        ("https://example.com", 23),
        ("See https://example.com/a/very/long/path?with=query&and=more, please.", 36),
        ("(https://example.com/a)", 25),
        ("example.com and nosuch.thing", 40),
        ("http://a.io http://b.io", 47),
        ("3.14 is no address", 18),
    ] {
        let fits = format!("{text} {}", "a".repeat(279 - length));
        let posted = bot.ask("compose", json!({ "text": fits })).await;
        assert_eq!(posted["success"], true, "{text}: {posted}");
        let told = bot.compose_fails(&format!("{fits}a"), "tweet_too_long").await;
        let what = "The tweet has 281 weighted characters, of 280";
        assert_eq!(told["error"]["message"], what, "{text}");
    }
}
