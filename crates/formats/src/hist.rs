//! STUB for compile
use kdyno_model::*;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Bcc,
}
impl std::str::FromStr for Tool {
    type Err = String;
    fn from_str(_: &str) -> Result<Self, String> {
        Ok(Tool::Bcc)
    }
}
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub start_s: f64,
    pub length_s: f64,
}
pub struct Section {
    pub name: String,
    pub unit: Unit,
    pub histogram: Histogram,
    pub span: Option<Span>,
}
pub struct Report {
    pub tool: Tool,
    pub sections: Vec<Section>,
}
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct HistError {
    pub line: Option<usize>,
    pub reason: String,
    pub hint: String,
}
pub fn read(_: &[u8], _: Option<Tool>) -> Result<Report, HistError> {
    Ok(Report {
        tool: Tool::Bcc,
        sections: vec![],
    })
}
