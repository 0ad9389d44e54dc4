//! `serve`: the gateway over HTTP.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use faultwire_contract::Masks;
use faultwire_gateway::{
    BadNetwork, BreakerSettings, ClientSettings, Hosts, HttpLimits, Launch, MountSettings, Reload,
    RemoteSettings, Renewed, Serve, ServeError, SessionLimits, Upstream, serve,
};

use crate::args::call_settings::CallSettings;
use crate::args::serve::ServeArgs;
use crate::call_settings::set;
use crate::clients::clients;
use crate::config::{self, Config};
use crate::problem::Problem;
use crate::secrets::{self, secret};
use crate::{Done, call_settings, edge, logging, server_name};

/// The default port.
const PORT: u16 = 7332;

/// The highest value of the setting `connections`.
const MOST_CONNECTIONS: usize = 1_000_000;

pub fn run(args: ServeArgs) -> Result<Done, Problem> {
    let config = Config::read(args.call_settings.config.as_deref())?;
    logging::start(call_settings::level(&args.call_settings, &config)?);
    config.warn_of_old_names();
    let mut mounts = mounts(&args, &config)?;
    let clients = clients(&config)?;
    let withheld = secrets::keep(&mut mounts, &clients, &config);
    if !withheld.is_empty() || clients.iter().any(|client| client.token.is_some()) {
        edge::hide_environment();
    }
    let listen = listen(&args, &config, &clients)?;
    let (log, place) =
        call_settings::open_log(&args.call_settings, &config, "serve", &mounts[0].name)?;
    let mut limits = HttpLimits::default();
    set(&mut limits.body_bytes, config.serve.body_bytes);
    set(&mut limits.header_bytes, config.serve.header_bytes);
    set(&mut limits.connections, config.serve.connections);
    if !(1..=MOST_CONNECTIONS).contains(&limits.connections) {
        let what =
            format!("connections must be between 1 and 1,000,000, got {}", limits.connections);
        let help = "set connections to a number in that range";
        return Err(Problem::bad(&config.place(&["serve", "connections"]), what, help));
    }
    let set = Serve {
        listen,
        budgets: Some(place.join("budgets.json")),
        hosts: hosts(&config, listen)?,
        collector: collector(args.otlp.as_deref(), &config)?,
        threads: config.serve.threads.unwrap_or_else(threads),
        busy_poll: config.busy_poll.unwrap_or(true),
        mounts,
        clients,
        limits,
    };
    let names: Vec<String> = set.mounts.iter().map(|mount| mount.name.clone()).collect();
    let greeting = move |address| {
        // A closed stdout does not keep the gateway from running.
        let _ = edge::show(&greeting(address, &names));
    };
    let served = serve(set, &log, Some(reload(args, listen)), greeting);
    let closed = log.close();
    served.map_err(|e| Problem::Startup {
        place: "serve".to_owned(),
        what: e.to_string(),
        help: help(&e).to_owned(),
    })?;
    Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
}

/// What to do about a gateway that does not start, or that stopped.
fn help(error: &ServeError) -> &'static str {
    match error {
        ServeError::Listen { .. } => "choose another --host or --port; port 0 chooses a free one",
        ServeError::Remote(_) => "check the upstream's url and ca_file",
        ServeError::Collector(_) => "check the URL in --otlp or serve.otlp",
        ServeError::System(_) => "close some processes or open files",
        ServeError::Broken(_) => "restart faultwire, and report this as a bug",
    }
}

fn greeting(address: SocketAddr, names: &[String]) -> String {
    let mut text = format!("faultwire serves http://{address}/mcp\n");
    if names.len() > 1 {
        for name in names {
            text.push_str(&format!("  {name}: http://{address}/mcp/{name}\n"));
        }
    }
    text.push_str(&format!("Status: http://{address}/   Press Ctrl-C to stop\n"));
    text
}

/// The address to listen on; beyond this machine, clients need tokens.
fn listen(
    args: &ServeArgs,
    config: &Config,
    clients: &[ClientSettings],
) -> Result<SocketAddr, Problem> {
    let host = args.host.or(config.serve.host).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = args.port.or(config.serve.port).unwrap_or(PORT);
    let listen = SocketAddr::new(host, port);
    closed_to_others(listen, config, clients)?;
    Ok(listen)
}

fn closed_to_others(
    listen: SocketAddr,
    config: &Config,
    clients: &[ClientSettings],
) -> Result<(), Problem> {
    let open = clients.is_empty() || clients.iter().any(|client| client.token.is_none());
    if listen.ip().is_loopback() || !open || config.serve.open_to_all {
        return Ok(());
    }
    Err(Problem::Startup {
        place: listen.to_string(),
        what: "other machines could call every tool without a token".to_owned(),
        help: "give every [[client]] a token, or set serve.open_to_all = true".to_owned(),
    })
}

/// The names that requests may use for the gateway, including the address that it prints.
fn hosts(config: &Config, listen: SocketAddr) -> Result<Hosts, Problem> {
    let mut names = config.serve.hosts.clone();
    match listen.ip() {
        ip if ip.is_unspecified() => {}
        IpAddr::V4(ip) => names.push(ip.to_string()),
        IpAddr::V6(ip) => names.push(format!("[{ip}]")),
    }
    let mut proxies = Vec::new();
    for written in &config.serve.trusted_proxies {
        let place = || config.place(&["serve", "trusted_proxies"]);
        let help = "list the addresses of the proxies in front of the gateway";
        let network =
            written.parse().map_err(|e: BadNetwork| Problem::bad(&place(), e.to_string(), help))?;
        proxies.push(network);
    }
    Ok(Hosts { names, origins: config.serve.origins.clone(), proxies })
}

/// The collector of traces. An empty value means none, as usual for this variable.
fn collector(typed: Option<&str>, config: &Config) -> Result<Option<RemoteSettings>, Problem> {
    let place = || match typed {
        Some(_) => "--otlp".to_owned(),
        None => config.place(&["serve", "otlp"]),
    };
    let help = "write a URL such as http://127.0.0.1:4318";
    let at = |url| RemoteSettings::at(url).map_err(|e| Problem::bad(&place(), e.to_string(), help));
    let url = typed.or(config.serve.otlp.as_deref());
    url.filter(|url| !url.is_empty()).map(at).transpose()
}

/// Half of the machine's cores: the servers and the audit log need the rest.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)).min(8)
}

/// Reads the settings again, for a gateway that already listens.
fn reload(args: ServeArgs, listen: SocketAddr) -> Reload {
    Box::new(move || {
        let renewed = || -> Result<Renewed, Problem> {
            let config = Config::read(args.call_settings.config.as_deref())?;
            let mut mounts = mounts(&args, &config)?;
            let clients = clients(&config)?;
            closed_to_others(listen, &config, &clients)?;
            let withheld = secrets::keep(&mut mounts, &clients, &config);
            let mounts = mounts.into_iter().map(|mount| (mount.name, mount.settings)).collect();
            Ok(Renewed { clients, mounts, withheld })
        };
        renewed().map_err(|problem| problem.to_string())
    })
}

/// The upstreams: from the command line and the file, or else the demo server.
fn mounts(args: &ServeArgs, config: &Config) -> Result<Vec<MountSettings>, Problem> {
    let mut mounts = Vec::new();
    if let Some((name, upstream)) = typed(args)? {
        mounts.push(mount(name, upstream, &args.call_settings, config, None)?);
    }
    let typed = mounts.len();
    for (number, written) in config.mount.iter().enumerate() {
        let place = |key: &str| config.place(&["mount", &number.to_string(), key]);
        let upstream = of_file(written, place)?;
        let name = written.name.clone();
        mounts.push(mount(name, upstream, &args.call_settings, config, Some(number))?);
    }
    if mounts.is_empty() {
        let demo = vec![edge::program().into_os_string(), "demo-server".into()];
        let name = args.name.clone().unwrap_or_else(|| "demo".to_owned());
        mounts.push(mount(
            name,
            Upstream::Command(demo.into()),
            &args.call_settings,
            config,
            None,
        )?);
    }
    let mut names = BTreeSet::new();
    for (number, mount) in mounts.iter().enumerate() {
        let place = || match number.checked_sub(typed).filter(|n| *n < config.mount.len()) {
            Some(written) => config.place(&["mount", &written.to_string(), "name"]),
            None => "--name".to_owned(),
        };
        let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // `.` and `..` have a special meaning in URLs.
        let is_place = mount.name.chars().all(|c| c == '.');
        if is_place || !mount.name.chars().all(usable) {
            let what = format!("{:?} is not a valid mount name", mount.name);
            return Err(Problem::bad(&place(), what, "use letters, digits, -, _ and ."));
        }
        if !names.insert(&mount.name) {
            let what = format!("two mounts are named {:?}", mount.name);
            return Err(Problem::bad(&place(), what, "give each mount a unique name"));
        }
    }
    Ok(mounts)
}

fn mount(
    name: String,
    upstream: Upstream,
    call_settings: &CallSettings,
    config: &Config,
    written: Option<usize>,
) -> Result<MountSettings, Problem> {
    let settings = call_settings::settings_of(call_settings, config, Masks::REMOTE, written)?;
    let mut session_limits = SessionLimits::default();
    set(&mut session_limits.sessions, config.serve.sessions);
    set(&mut session_limits.idle, config.serve.idle);
    set(&mut session_limits.spare, config.serve.spare);
    let mut breaker = BreakerSettings::default();
    set(&mut breaker.failures, config.breaker.failures);
    set(&mut breaker.wait, config.breaker.wait);
    set(&mut breaker.cap, config.breaker.cap);
    Ok(MountSettings { name, upstream, session_limits, breaker, settings })
}

/// The upstream from the command line, and its name.
fn typed(args: &ServeArgs) -> Result<Option<(String, Upstream)>, Problem> {
    let named = |name: &str| args.name.clone().unwrap_or_else(|| name.to_owned());
    if let Some(url) = &args.upstream {
        let remote = remote(url, "--upstream")?;
        let host = remote.url.host().unwrap_or_default().trim_matches(['[', ']']);
        return Ok(Some((named(&host.replace(['.', ':'], "-")), Upstream::Url(remote))));
    }
    if args.command.is_empty() {
        return Ok(None);
    }
    let name = named(&server_name::of(&args.command));
    Ok(Some((name, Upstream::Command(args.command.clone().into()))))
}

fn of_file(mount: &config::Mount, place: impl Fn(&str) -> String) -> Result<Upstream, Problem> {
    match (&mount.url, mount.command.is_empty()) {
        (None, false) => {
            let command = mount.command.iter().map(OsString::from).collect();
            let mut given = Vec::new();
            for (name, variable) in &mount.env {
                let value = secret(Some(variable), None, &place("env"))?.unwrap_or_default();
                given.push((name.into(), value.into()));
            }
            Ok(Upstream::Command(Launch { command, given, ..Launch::default() }))
        }
        (Some(url), true) => {
            let mut remote = remote(url, &place("url"))?;
            let headers = place("headers_env");
            for (header, variable) in &mount.headers_env {
                let value = secret(Some(variable), None, &headers)?.unwrap_or_default();
                remote = remote.with_header(header, &value).map_err(|e| {
                    Problem::bad(
                        &headers,
                        e.to_string(),
                        "write for example authorization = \"VARIABLE\"",
                    )
                })?;
            }
            if let Some(file) = &mount.ca_file {
                let trusted = edge::file(file).map_err(|e| e.asked_at(place("ca_file")));
                remote.trust = Some(trusted?.into_bytes());
            }
            Ok(Upstream::Url(remote))
        }
        _ => {
            let help = "set either command = [\"npx\", …] or url = \"https://…\"";
            let what = format!("mount {:?} must have either a command or a url", mount.name);
            Err(Problem::bad(&place("name"), what, help))
        }
    }
}

fn remote(url: &str, place: &str) -> Result<RemoteSettings, Problem> {
    RemoteSettings::at(url).map_err(|e| {
        Problem::bad(place, e.to_string(), "write a URL such as http://127.0.0.1:3000/mcp")
    })
}
