//! Who asks: the facts of a session, the settings that it is served under, and where its answers
//! go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use faultwire_contract::{Caller, Contract, Session, SessionState, Surface};
use sha2::{Digest, Sha256};

use crate::door::Door;
use crate::edge;
use crate::failing::Failing;
use crate::front::http::Stranger;
use crate::guard::access::Access;
use crate::guard::mirror::Head;
use crate::guard::scope::Kind;
use crate::guard::targets;
use crate::outlet::Outlet;
use crate::settings::Settings;

/// A client, for as long as its session lasts.
pub(crate) struct Party {
    pub door: Arc<Door>,
    pub settings: Arc<Settings>,
    /// Where answers go if a call does not say otherwise.
    pub outlet: Arc<dyn Outlet>,
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
pub(crate) struct Asker<'a> {
    pub party: &'a Arc<Party>,
    /// Where the answer goes, if not where all of the party's do.
    pub outlet: Option<&'a Arc<dyn Outlet>>,
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

impl Party {
    pub(crate) fn new(
        door: Arc<Door>,
        settings: Arc<Settings>,
        outlet: Arc<dyn Outlet>,
        session: Session,
    ) -> Arc<Self> {
        let owner = owner_of(None, &session);
        Arc::new(Self {
            door,
            settings,
            outlet,
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
        door: Arc<Door>,
        settings: Arc<Settings>,
        outlet: Arc<dyn Outlet>,
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
        let party = Self {
            digest: Some(digest(&owner)),
            owner,
            door,
            settings,
            outlet,
            access: Mutex::default(),
            name,
            session: Mutex::new(session),
            standing: standing.unwrap_or_default(),
        };
        party.allow(access);
        Arc::new(party)
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
    pub(crate) fn objection(&self, tool: Option<&str>) -> Option<Failing> {
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
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn standing(&self) -> MutexGuard<'_, SessionState> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks in the way of a client that has one stream for everything.
    pub(crate) fn plainly(self: &Arc<Self>) -> Asker<'_> {
        Asker {
            party: self,
            outlet: None,
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

impl Asker<'_> {
    pub(crate) fn outlet(&self) -> &Arc<dyn Outlet> {
        self.outlet.unwrap_or(&self.party.outlet)
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
