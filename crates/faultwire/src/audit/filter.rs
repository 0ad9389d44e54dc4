//! The filter of a query.

use rusqlite::ToSql;

/// What to find. Without any condition it finds everything; `*` in a value stands for anything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Written at or after this moment, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
    /// Written before this moment.
    pub until_ms: Option<i64>,
    /// The type of record.
    pub kind: Option<String>,
    /// The code.
    pub code: Option<String>,
    /// Who called.
    pub client: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// Whose failure it was.
    pub origin: Option<String>,
    /// How far the call got.
    pub outcome: Option<String>,
    /// The incident.
    pub incident: Option<String>,
    /// The record's number.
    pub seq: Option<u64>,
}

impl Filter {
    /// The condition, and the values for its places.
    pub(crate) fn sql(&self) -> (String, Vec<Box<dyn ToSql>>) {
        let mut conditions = vec!["1".to_owned()];
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        if let Some(since) = self.since_ms {
            conditions.push("ts >= ?".to_owned());
            values.push(Box::new(since));
        }
        if let Some(until) = self.until_ms {
            conditions.push("ts < ?".to_owned());
            values.push(Box::new(until));
        }
        if let Some(seq) = self.seq {
            conditions.push("seq = ?".to_owned());
            values.push(Box::new(seq.cast_signed()));
        }
        let words = [
            ("kind", &self.kind),
            ("code", &self.code),
            ("client", &self.client),
            ("tool", &self.tool),
            ("origin", &self.origin),
            ("outcome", &self.outcome),
            ("incident", &self.incident),
        ];
        for (column, word) in words {
            let Some(word) = word else { continue };
            // In GLOB, `?` and `[` are special, too, which users do not expect in a name.
            let glob = word.contains('*');
            let escaped = word.replace('[', "[[]").replace('?', "[?]");
            // An index for a pattern would lose the order by number, and with it the early end; the
            // plus keeps SQLite from using one.
            conditions.push(format!(
                "{} ?",
                if glob { format!("+{column} GLOB") } else { format!("{column} =") }
            ));
            values.push(Box::new(if glob { escaped } else { word.clone() }));
        }
        (conditions.join(" AND "), values)
    }
}
