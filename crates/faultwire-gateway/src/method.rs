//! The method of a request.

use faultwire_contract::Answers;
use serde::Deserialize;
use serde_json::Value;

use crate::wire;

/// Which requests are treated in a way of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    ToolsCall,
    ToolsList { first_page: bool },
    Other(Box<str>),
}

impl Method {
    /// Of a request with these params.
    pub(crate) fn of(name: &str, params: Option<&str>) -> Self {
        #[derive(Deserialize)]
        struct Paged {
            cursor: Option<Value>,
        }
        match name {
            wire::INITIALIZE => Self::Initialize,
            wire::TOOLS_CALL => Self::ToolsCall,
            wire::TOOLS_LIST => {
                let paged = params.and_then(|p| serde_json::from_str::<Paged>(p).ok());
                Self::ToolsList { first_page: paged.and_then(|p| p.cursor).is_none() }
            }
            other => Self::Other(other.into()),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Initialize => wire::INITIALIZE,
            Self::ToolsCall => wire::TOOLS_CALL,
            Self::ToolsList { .. } => wire::TOOLS_LIST,
            Self::Other(name) => name,
        }
    }

    pub(crate) fn answers(&self) -> Answers {
        match self {
            Self::ToolsCall => Answers::ToolCall,
            Self::Other(name) if **name == *"tasks/result" => Answers::ToolCall,
            _ => Answers::Other,
        }
    }
}
