//! OpenAPI document, generated from the types that the handlers read and write.

use super::error::ApiError;
use super::query::{
    ContextQuery, MemoryQuery, RecordsQuery, SearchQuery, SlicesQuery, TranscriptQuery,
};
use super::reading::{NamespaceStatus, Page};
use crate::context::Block;
use crate::pipeline::IntakeReport;
use crate::rows::{MemoryRow, RecordRow, SearchRow};
use crate::transcripts::slice_schema;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

struct Operation {
    path: &'static str,
    /// First line of the description.
    summary: &'static str,
    parameters: Value,
    /// Content of the request body by media type, if there is one.
    body: Option<Value>,
    answer: Value,
}

/// Builds the document that `/v1/openapi.json` serves.
pub(crate) fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut types = settings.into_generator();
    let operations = operations(&mut types);
    let error = types.subschema_for::<ApiError>().to_value();
    let mut paths = Map::new();
    for Operation { path, summary, parameters, body, answer } in operations {
        let (method, status, description) = match body {
            Some(_) => ("post", "202", "Accepted and stored"),
            None => ("get", "200", "The answer"),
        };
        let mut operation = json!({
            "summary": summary,
            "parameters": parameters,
            "responses": {
                status: {"description": description, "content": {"application/json": {"schema": answer}}},
                "default": {
                    "description": "Refused or failed: what, where, and what was expected",
                    "content": {"application/json": {"schema": error}},
                },
            },
        });
        if let Some(content) = body {
            operation["responses"]["413"] = json!({
                "description": "The body or each of its documents is too large",
                "content": {"application/json": {"schema": error}},
            });
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        paths.insert(path.to_owned(), json!({ method: operation }));
    }
    let mut schemas = Map::new();
    schemas.insert("SliceDocument".to_owned(), slice_schema().clone());
    schemas.extend(types.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "annalist",
            "version": "1",
            "description": "Conversations in, records and memories out. Everything is in the namespace of the token.",
        },
        "servers": [{"url": "http://127.0.0.1:4816"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

fn operations(types: &mut SchemaGenerator) -> Vec<Operation> {
    let document = json!({"schema": {"$ref": "#/components/schemas/SliceDocument"}});
    let bytes = json!({"schema": {}});
    vec![
        Operation {
            path: "/v1/slices",
            summary: "Send slice documents, one or one per line (token: write)",
            parameters: parameters::<SlicesQuery>(),
            body: Some(json!({"application/json": document, "application/jsonl": bytes})),
            answer: types.subschema_for::<IntakeReport>().to_value(),
        },
        Operation {
            path: "/v1/transcripts",
            summary: "Send a transcript in any supported format (token: write)",
            parameters: parameters::<TranscriptQuery>(),
            body: Some(json!({"application/octet-stream": bytes})),
            answer: types.subschema_for::<IntakeReport>().to_value(),
        },
        Operation {
            path: "/v1/records",
            summary: "List records, newest first (token: read)",
            parameters: parameters::<RecordsQuery>(),
            body: None,
            answer: types.subschema_for::<Page<RecordRow<'static>>>().to_value(),
        },
        Operation {
            path: "/v1/memory",
            summary: "List memories, newest first (token: read)",
            parameters: parameters::<MemoryQuery>(),
            body: None,
            answer: types.subschema_for::<Page<MemoryRow<'static>>>().to_value(),
        },
        Operation {
            path: "/v1/search",
            summary: "Search records and memories, best match first (token: read)",
            parameters: parameters::<SearchQuery>(),
            body: None,
            answer: types.subschema_for::<Vec<SearchRow<'static>>>().to_value(),
        },
        Operation {
            path: "/v1/context",
            summary: "The start block of a session in the server's project (token: read)",
            parameters: parameters::<ContextQuery>(),
            body: None,
            answer: types.subschema_for::<Block>().to_value(),
        },
        Operation {
            path: "/v1/status",
            summary: "Totals of the states of all entries in the namespace (token: read)",
            parameters: json!([]),
            body: None,
            answer: types.subschema_for::<NamespaceStatus>().to_value(),
        },
    ]
}

/// Returns the fields of `T` as query parameters.
fn parameters<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let fields = schema["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let parameters = fields.into_iter().map(|(name, mut schema)| {
        let description = schema.as_object_mut().and_then(|it| it.remove("description"));
        json!({"name": name, "in": "query", "description": description, "schema": schema})
    });
    parameters.collect()
}
