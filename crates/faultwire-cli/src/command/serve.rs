//! `serve`: the gateway over HTTP.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use faultwire_contract::Masks;
use faultwire_gateway::{
    BadNetwork, BreakerSettings, ClientSettings, Crowd, Hosts, HttpLimits, Launch, MountSettings,
    Reload, RemoteSettings, Renewed, Serve, Upstream, serve,
};

use crate::args::serve::ServeArgs;
use crate::args::treatment::Treatment;
use crate::clients::clients;
use crate::config::{self, Config};
use crate::problem::Problem;
use crate::secrets::{self, secret};
use crate::treatment::set;
use crate::{Done, edge, server_name, treatment};

/// Where it listens when nobody says.
const PORT: u16 = 7332;

/// No machine has more.
const MOST_CONNECTIONS: usize = 1_000_000;

pub fn run(args: ServeArgs) -> Result<Done, Problem> {
    let config = Config::read(args.treatment.config.as_deref())?;
    edge::tell(treatment::level(&args.treatment, &config)?);
    let mut mounts = mounts(&args, &config)?;
    let clients = clients(&config)?;
    let withheld = secrets::keep(&mut mounts, &clients, &config);
    if !withheld.is_empty() || clients.iter().any(|client| client.token.is_some()) {
        edge::hide_environment();
    }
    let listen = listen(&args, &config, &clients)?;
    let (log, place) = treatment::open_log(&args.treatment, &config, "serve", &mounts[0].name)?;
    let mut limits = HttpLimits::default();
    set(&mut limits.body_bytes, config.serve.body_bytes);
    set(&mut limits.header_bytes, config.serve.header_bytes);
    set(&mut limits.connections, config.serve.connections);
    if !(1..=MOST_CONNECTIONS).contains(&limits.connections) {
        let what = format!("connections = {} is none that can be", limits.connections);
        let help = format!("write a number from 1 to {MOST_CONNECTIONS}");
        return Err(Problem::bad(&config.place(&["serve", "connections"]), what, help));
    }
    let set = Serve {
        listen,
        budgets: Some(place.join("budgets.json")),
        hosts: hosts(&config, listen)?,
        collector: collector(args.otlp.as_deref(), &config)?,
        threads: config.serve.threads.unwrap_or_else(threads),
        linger: config.linger.unwrap_or(true),
        mounts,
        clients,
        limits,
    };
    let names: Vec<String> = set.mounts.iter().map(|mount| mount.name.clone()).collect();
    let greeting = move |address| {
        // Who started it in the dark needs no greeting.
        let _ = edge::show(&greeting(address, &names));
    };
    let served = serve(set, &log, Some(reload(args, listen)), greeting);
    let closed = log.close();
    served.map_err(|e| Problem::Startup {
        place: listen.to_string(),
        what: e.to_string(),
        help: "choose another --port, or 0 for any that is free".to_owned(),
    })?;
    Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
}

fn greeting(address: SocketAddr, names: &[String]) -> String {
    let mut text = format!("faultwire serves http://{address}/mcp\n");
    if names.len() > 1 {
        for name in names {
            text.push_str(&format!("  {name}: http://{address}/mcp/{name}\n"));
        }
    }
    text.push_str(&format!("Status: http://{address}/   Ctrl-C ends it\n"));
    text
}

/// Beyond this machine only for those who show who they are.
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
        what: "others could call every tool without a token".to_owned(),
        help: "give clients tokens ([[client]]), or say serve.open_to_all = true".to_owned(),
    })
}

/// The names that the gateway goes by: the address that it prints itself is one.
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

/// Who collects traces. An empty text is nobody, as usual for that variable.
fn collector(typed: Option<&str>, config: &Config) -> Result<Option<RemoteSettings>, Problem> {
    let place = || match typed {
        Some(_) => "--otlp".to_owned(),
        None => config.place(&["serve", "otlp"]),
    };
    let help = "write it as http://127.0.0.1:4318";
    let at = |url| RemoteSettings::at(url).map_err(|e| Problem::bad(&place(), e.to_string(), help));
    let url = typed.or(config.serve.otlp.as_deref());
    url.filter(|url| !url.is_empty()).map(at).transpose()
}

/// Half of the machine: servers, and whoever records, need the rest.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)).min(8)
}

/// The settings as they are now in the file, for a gateway that listens there.
fn reload(args: ServeArgs, listen: SocketAddr) -> Reload {
    Box::new(move || {
        let renewed = || -> Result<Renewed, Problem> {
            let config = Config::read(args.treatment.config.as_deref())?;
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

/// What stands behind the gateway: what was typed, what the file says, or the demo server.
fn mounts(args: &ServeArgs, config: &Config) -> Result<Vec<MountSettings>, Problem> {
    let mut mounts = Vec::new();
    if let Some((name, upstream)) = typed(args)? {
        mounts.push(mount(name, upstream, &args.treatment, config, None)?);
    }
    let typed = mounts.len();
    for (number, written) in config.mount.iter().enumerate() {
        let place = |key: &str| config.place(&["mount", &number.to_string(), key]);
        let upstream = of_file(written, place)?;
        let name = written.name.clone();
        mounts.push(mount(name, upstream, &args.treatment, config, Some(number))?);
    }
    if mounts.is_empty() {
        let demo = vec![edge::program().into_os_string(), "demo-server".into()];
        let name = args.name.clone().unwrap_or_else(|| "demo".to_owned());
        mounts.push(mount(name, Upstream::Command(demo.into()), &args.treatment, config, None)?);
    }
    let mut names = BTreeSet::new();
    for (number, mount) in mounts.iter().enumerate() {
        let place = || match number.checked_sub(typed) {
            Some(written) => config.place(&["mount", &written.to_string(), "name"]),
            None => "--name".to_owned(),
        };
        let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        // `.` and `..` mean places.
        let is_place = mount.name.chars().all(|c| c == '.');
        if is_place || !mount.name.chars().all(usable) {
            let what = format!("{:?} cannot stand in a URL", mount.name);
            return Err(Problem::bad(&place(), what, "use letters, digits, - and _"));
        }
        if !names.insert(&mount.name) {
            let what = format!("{:?} is there twice", mount.name);
            return Err(Problem::bad(&place(), what, "give each mount a name of its own"));
        }
    }
    Ok(mounts)
}

fn mount(
    name: String,
    upstream: Upstream,
    treatment: &Treatment,
    config: &Config,
    written: Option<usize>,
) -> Result<MountSettings, Problem> {
    let settings = treatment::settings_of(treatment, config, Masks::REMOTE, written)?;
    let mut crowd = Crowd::default();
    set(&mut crowd.sessions, config.serve.sessions);
    set(&mut crowd.idle, config.serve.idle);
    set(&mut crowd.spare, config.serve.spare);
    let mut breaker = BreakerSettings::default();
    set(&mut breaker.failures, config.breaker.failures);
    set(&mut breaker.wait, config.breaker.wait);
    set(&mut breaker.cap, config.breaker.cap);
    Ok(MountSettings { name, upstream, crowd, breaker, settings })
}

/// What was typed, and what it is called.
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
                    Problem::bad(&headers, e.to_string(), "write authorization = \"VARIABLE\", say")
                })?;
            }
            if let Some(file) = &mount.ca_file {
                let trusted = edge::file(file).map_err(|e| e.asked_at(place("ca_file")));
                remote.trust = Some(trusted?.into_bytes());
            }
            Ok(Upstream::Url(remote))
        }
        _ => {
            let help = "write one of: command = [\"npx\", …] or url = \"https://…\"";
            let what = format!("mount {:?} has not one of command and url", mount.name);
            Err(Problem::bad(&place("name"), what, help))
        }
    }
}

fn remote(url: &str, place: &str) -> Result<RemoteSettings, Problem> {
    RemoteSettings::at(url)
        .map_err(|e| Problem::bad(place, e.to_string(), "write it as http://127.0.0.1:3000/mcp"))
}
