//! Who asks: the facts of a session, the settings that it is served under, and where its answers
//! go.

use std::sync::Arc;

use faultwire_contract::{Caller, Contract, Session, SessionState, Surface};
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use super::OpenCall;
use crate::client_sink::ClientSink;
use crate::edge;
use crate::failing::CallFailure;
use crate::guard::access::Access;
use crate::guard::refusals::Stranger;
use crate::guard::scope::Kind;
use crate::guard::targets;
use crate::header_params::Head;
use crate::memory_quota::MemoryQuota;
use crate::settings::Settings;

/// Records what fails, and answers it.
pub(crate) trait Responder: Send + Sync {
    /// Has a failed call recorded, and answered after that.
    fn fail(&self, client: Arc<ClientContext>, call: OpenCall, failure: CallFailure);

    /// Records and answers something of the client's that is no call: there is nothing to send on.
    fn refuse(
        &self,
        context: RequestContext<'_>,
        id: Option<&str>,
        number: i64,
        failure: CallFailure,
    );

    /// What may be held for clients that do not read.
    fn quota(&self) -> &Arc<MemoryQuota>;

    /// Whether there is a collector of traces.
    fn is_tracing(&self) -> bool;
}

/// A client, for as long as its session lasts.
pub(crate) struct ClientContext {
    pub responder: Arc<dyn Responder>,
    pub settings: Arc<Settings>,
    /// Where answers go if a call does not say otherwise.
    pub sink: Arc<dyn ClientSink>,
    /// What the client may do, where that is limited.
    access: Mutex<Option<Arc<Access>>>,
    /// The name under which it is known here: who showed a token is known better than who says
    /// a name.
    pub name: Option<String>,
    /// To whom tasks belong that it begins: the client of its token, else its session.
    pub owner: Box<str>,
    /// A short digest of that, which tells one owner's ids from another's; none where there is but
    /// one client.
    pub digest: Option<Box<str>>,
    session: Mutex<Session>,
    /// How its session stands, where the contract has rules for that.
    standing: Arc<Mutex<SessionState>>,
}

/// Who sent a message, and how it is to be answered.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub client: &'a Arc<ClientContext>,
    /// Where the answer goes, if not where all of the client's do.
    pub sink: Option<&'a Arc<dyn ClientSink>>,
    /// What the client calls the request, if it was given another id.
    pub known_as: Option<KnownAs<'a>>,
    /// How a failure is put.
    pub surface: Surface,
    /// Whether client and server are of one era.
    pub bridged: Bridged,
    /// The trace that the request belongs to, if its head tells.
    pub trace: Option<&'a str>,
    /// What the head repeats of the arguments, where it has to.
    pub head: Option<&'a Head>,
    /// Who asks, if nothing is known of the client but its address.
    pub stranger: Option<&'a Stranger<'a>>,
}

/// Whether client and server are of one era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bridged {
    /// They are.
    #[default]
    No,
    /// The client is of the legacy era, the server is not.
    LegacyClient,
    /// The client is of the modern era, the server is not.
    ModernClient,
}

/// What a client calls a request.
#[derive(Clone, Copy)]
pub(crate) struct KnownAs<'a> {
    /// Its id, as it was written.
    pub id: &'a str,
    /// The token of its progress, as it was written.
    pub token: Option<&'a str>,
}

impl ClientContext {
    pub(crate) fn new(
        responder: Arc<dyn Responder>,
        settings: Arc<Settings>,
        sink: Arc<dyn ClientSink>,
        session: Session,
    ) -> Arc<Self> {
        let owner = owner_of(None, &session);
        Arc::new(Self {
            responder,
            settings,
            sink,
            access: Mutex::default(),
            name: None,
            digest: None,
            owner,
            session: Mutex::new(session),
            standing: Arc::default(),
        })
    }

    /// A client that may not do everything, and under which settings it was served before.
    pub(crate) fn limited(
        responder: Arc<dyn Responder>,
        settings: Arc<Settings>,
        sink: Arc<dyn ClientSink>,
        access: &Arc<Access>,
        session: Session,
        before: Option<&Self>,
    ) -> Arc<Self> {
        // A session that it has begun goes on, and what is still open counts for it.
        let same = |before: &&Self| before.settings.contract.name == settings.contract.name;
        let standing = before.filter(same).map(|before| Arc::clone(&before.standing));
        let name = Some(access.name.clone()).filter(|name| !name.is_empty());
        let session = Session {
            client: name.clone().or(session.client),
            role: access.role.clone().or(session.role),
            ..session
        };
        let owner = owner_of(Some(access), &session);
        let client = Self {
            digest: Some(digest(&owner)),
            owner,
            responder,
            settings,
            sink,
            access: Mutex::default(),
            name,
            session: Mutex::new(session),
            standing: standing.unwrap_or_default(),
        };
        client.allow(access);
        Arc::new(client)
    }

    /// Whether it was made for this access, and not for one that was replaced.
    pub(crate) fn is_of(&self, access: &Arc<Access>) -> bool {
        match &*self.access() {
            Some(own) => Arc::ptr_eq(own, access),
            None => access.is_free(),
        }
    }

    /// From now on it may do this.
    pub(crate) fn allow(&self, access: &Arc<Access>) {
        *self.access() = Some(Arc::clone(access)).filter(|access| !access.is_free());
    }

    /// What is against a call of this client, if something is.
    pub(crate) fn objection(&self, tool: Option<&str>) -> Option<CallFailure> {
        let access = self.access().clone()?;
        access.objection(self.contract(), tool)
    }

    /// Whether the client may know of a thing.
    pub(crate) fn may_use(&self, kind: Kind, name: &str) -> bool {
        self.access().as_ref().is_none_or(|access| access.scope().allows(kind, name))
    }

    /// Whether there are things of a kind that it may not know of.
    pub(crate) fn is_kept_from(&self, kind: Kind) -> bool {
        self.access().as_ref().is_some_and(|access| access.scope().limits(kind))
    }

    /// Why the client may not send a request that is no call of a tool, if it may not.
    pub(crate) fn target_objection(
        &self,
        method: &str,
        params: Option<&str>,
    ) -> Option<&'static str> {
        let access = self.access().clone()?;
        targets::objection(access.scope(), method, params)
    }

    /// Whether the client may send a notification.
    pub(crate) fn may_notify(&self, method: &str) -> bool {
        self.access().as_ref().is_none_or(|access| targets::may_notify(access.scope(), method))
    }

    fn access(&self) -> MutexGuard<'_, Option<Arc<Access>>> {
        self.access.lock()
    }

    pub(crate) fn contract(&self) -> &Arc<Contract> {
        &self.settings.contract
    }

    /// The client as a reader of texts, of whose call nothing is known.
    pub(crate) fn caller(&self) -> Caller<'static> {
        Caller::new(self.settings.masks)
    }

    /// The client has said who it is.
    pub(crate) fn greet(&self, client: Option<String>) {
        if self.name.is_none() {
            self.session().client = client;
        }
    }

    pub(crate) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }

    pub(crate) fn standing(&self) -> MutexGuard<'_, SessionState> {
        self.standing.lock()
    }

    /// Asks in the way of a client that has one stream for everything.
    pub(crate) fn plainly(self: &Arc<Self>) -> RequestContext<'_> {
        RequestContext {
            client: self,
            sink: None,
            known_as: None,
            surface: Surface::Mcp,
            bridged: Bridged::No,
            trace: None,
            head: None,
            stranger: None,
        }
    }
}

/// A few digits that tell one text from others.
pub(crate) fn digest(owner: &str) -> Box<str> {
    let digest = Sha256::digest(owner);
    let (head, _) = digest.split_at(6);
    head.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")).into()
}

fn owner_of(access: Option<&Access>, session: &Session) -> Box<str> {
    match access.filter(|access| access.has_token) {
        Some(access) => format!("client {}", access.name).into(),
        None => format!("session {}", session.id.as_deref().unwrap_or_default()).into(),
    }
}

impl RequestContext<'_> {
    pub(crate) fn sink(&self) -> &Arc<dyn ClientSink> {
        self.sink.unwrap_or(&self.client.sink)
    }
}

/// A random UUID, version 4.
fn uuid(high: u64, low: u64) -> String {
    let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | (0b10 << 62));
    let (first, last) = (format!("{high:016x}"), format!("{low:016x}"));
    let (a, b, c) = (&first[..8], &first[8..12], &first[12..]);
    format!("{a}-{b}-{c}-{}-{}", &last[..4], &last[4..])
}

/// The facts of a session that begins now.
pub(crate) fn session_of(settings: &Settings) -> Session {
    Session { id: Some(uuid(edge::random(), edge::random())), ..settings.session.clone() }
}
