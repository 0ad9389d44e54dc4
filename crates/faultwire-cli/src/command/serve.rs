//! `serve`: the gateway over HTTP.

use std::ffi::OsString;
use std::net::SocketAddr;

use faultwire_gateway::{Crowd, Hosts, HttpLimits, MountSettings, Serve, Upstream, serve};

use crate::args::serve::ServeArgs;
use crate::config::Config;
use crate::problem::Problem;
use crate::{Done, edge, server_name, treatment};

pub fn run(args: &ServeArgs) -> Result<Done, Problem> {
    let config = Config::read(args.treatment.config.as_deref())?;
    edge::tell(treatment::level(&args.treatment, &config)?);
    let settings = treatment::settings(&args.treatment, &config)?;
    let (name, command) = upstream(args);
    let log = treatment::open_log(&args.treatment, &config, "serve", &name)?;
    let listen = SocketAddr::new(args.host, args.port);
    let mount = MountSettings {
        name,
        upstream: Upstream::Command(command),
        crowd: Crowd::default(),
        settings,
    };
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
fn upstream(args: &ServeArgs) -> (String, Vec<OsString>) {
    if args.command.is_empty() {
        let demo = vec![edge::program().into_os_string(), "demo-server".into()];
        return (args.name.clone().unwrap_or_else(|| "demo".to_owned()), demo);
    }
    let name = args.name.clone().unwrap_or_else(|| server_name::of(&args.command));
    (name, args.command.clone())
}
