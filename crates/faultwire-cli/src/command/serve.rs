//! `serve`: the gateway over HTTP.

use std::net::SocketAddr;

use faultwire_gateway::{
    Crowd, Hosts, HttpLimits, MountSettings, RemoteSettings, Serve, Upstream, serve,
};

use crate::args::serve::ServeArgs;
use crate::config::Config;
use crate::problem::Problem;
use crate::{Done, edge, server_name, treatment};

pub fn run(args: &ServeArgs) -> Result<Done, Problem> {
    let config = Config::read(args.treatment.config.as_deref())?;
    edge::tell(treatment::level(&args.treatment, &config)?);
    let settings = treatment::settings(&args.treatment, &config)?;
    let (name, upstream) = upstream(args)?;
    let log = treatment::open_log(&args.treatment, &config, "serve", &name)?;
    let listen = SocketAddr::new(args.host, args.port);
    let mount = MountSettings { name, upstream, crowd: Crowd::default(), settings };
    let set = Serve {
        listen,
        mounts: vec![mount],
        hosts: Hosts::default(),
        limits: HttpLimits::default(),
        threads: threads(),
    };
    let served = serve(set, &log, |address| {
        // Who started it in the dark needs no greeting.
        let _ = edge::show(&format!("faultwire serves http://{address}/mcp\n"));
    });
    let closed = log.close();
    served.map_err(|e| Problem::Startup {
        place: listen.to_string(),
        what: e.to_string(),
        help: "choose another --port, or 0 for any that is free".to_owned(),
    })?;
    Ok(if closed.is_ok() { Done::Fine } else { Done::Findings })
}

/// Half of the machine: servers, and whoever records, need the rest.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)).min(8)
}

/// What stands behind the gateway, and what it is called.
fn upstream(args: &ServeArgs) -> Result<(String, Upstream), Problem> {
    let named = |name: &str| args.name.clone().unwrap_or_else(|| name.to_owned());
    if let Some(url) = &args.upstream {
        let remote = RemoteSettings::at(url).map_err(|e| {
            Problem::bad("--upstream", e.to_string(), "write it as http://127.0.0.1:3000/mcp")
        })?;
        let host = remote.url.host().unwrap_or_default().trim_matches(['[', ']']);
        return Ok((named(&host.replace(['.', ':'], "-")), Upstream::Url(remote)));
    }
    if args.command.is_empty() {
        let demo = vec![edge::program().into_os_string(), "demo-server".into()];
        return Ok((named("demo"), Upstream::Command(demo)));
    }
    Ok((named(&server_name::of(&args.command)), Upstream::Command(args.command.clone())))
}
