//! Examples that are masked or kept, and three properties: no planted secret survives, masking is
//! idempotent, and JSON stays JSON.

mod layouts;
mod pairs;
mod places;
mod told;
mod weak;

use super::{RULES, mask};
use crate::privacy::Pii;
use crate::privacy::redacted::Report;
use proptest::prelude::*;

fn masked(text: &str) -> String {
    mask(text, &mut Report::default()).unwrap_or_else(|| text.to_owned())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let once = masked(text);
    assert_eq!(once, expected);
    assert_eq!(masked(&once), once, "masking twice changes nothing");
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.dedup();
    assert!(names.contains(&"jwt"));
    names.push("private");
    names.extend(Pii::ALL.map(Pii::name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Made-up secrets of known shapes, split in two so that no secret scanner reports this file.
fn shapes() -> Vec<String> {
    [
        ("sk-", "proj-Ab12Cd34Ef56Gh78Ij90_kLmN-op"),
        ("sk-", "svcacct-Ab12Cd34Ef56Gh78Ij90"),
        ("sk-", "Ab12Cd34Ef56Gh78Ij90KlMn"),
        ("sk-", "ant-api03-Ab12Cd34_Ef56-Gh78AA"),
        ("sk-", "or-v1-0123456789abcdef0123456789abcdef"),
        ("AKIA", "QYLPMN5HEXAMPLE7"),
        ("ASIA", "QYLPMN5HEXAMPLE7"),
        ("ghp_", "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78"),
        ("ghs_", "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78"),
        ("github_", "pat_11ABCDEFG0_Ab12Cd34Ef56Gh78Ij90Kl12Mn34"),
        ("glpat", "-Ab12Cd34_Ef56Gh78Ij9"),
        ("glrt", "-Ab12Cd34_Ef56Gh78Ij9"),
        ("xox", "b-123456789012-123456789012-Ab12Cd34Ef56Gh78"),
        ("xap", "p-1-A0123456789-1234567890123-abcdef0123456789"),
        ("AIza", "SyA12345678901234567890123456789012"),
        ("ya29", ".a0AfH6SMBx_1234567890-abcdefghijkl"),
        ("GOCSPX", "-Ab12Cd34Ef56Gh78Ij90KlMnOpQr"),
        ("sk_", "live_Ab12Cd34Ef56Gh78Ij90Kl12"),
        ("rk_", "live_Ab12Cd34Ef56Gh78Ij90Kl12"),
        ("whsec", "_Ab12Cd34Ef56Gh78Ij90Kl12"),
        ("npm", "_Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78"),
        ("pypi", "-AgEIcHlwaS5vcmcCJDAxMjM0NTY3ODkwMTIzNDU2Nzg5"),
        ("hf", "_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"),
        ("SG", ".Ab12Cd34Ef56Gh78Ij90Kl.Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78St90Uv1"),
        ("SK", "0123456789abcdef0123456789abcdef"),
        ("dop", "_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        ("987654321:", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw9"),
        ("AGE-", "SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQQPZRY9X8GF2TVDW0S3JN"),
        ("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"),
        ("mdb_sa", "_sk_Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78St90"),
        (
            "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78St90Uv12Wx34Yz56",
            "JQQJ99BIAb12Cd34Ef56Gh78AZDOij90",
        ),
        (
            "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78St90Uv12Wx34Yz56Ab12Cd34Ef56Gh78Ij90Kl12",
            "+AStAb12CQ==",
        ),
        ("waka", "_01234567-89ab-4def-8123-456789abcdef"),
    ]
    .map(|(head, tail)| format!("{head}{tail}"))
    .to_vec()
}

#[test]
fn every_shape_goes_wherever_it_stands() {
    for secret in shapes() {
        check(&secret, "<SECRET>");
        for (before, after) in [
            ("key ", " end"),
            ("\"", "\""),
            ("x\\n", "\\nb"),
            ("(", ")."),
            ("\u{15f}", "\u{15f}"),
            ("%20", "&"),
        ] {
            check(&format!("{before}{secret}{after}"), &format!("{before}<SECRET>{after}"));
        }
    }
}

#[test]
fn key_blocks_go_from_end_to_end() {
    let body = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI";
    for label in [
        "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "PGP MESSAGE",
    ] {
        let open = format!("-----BEGIN {label}-----");
        let close = format!("-----END {label}-----");
        check(&format!("a\n{open}\n{body}\n{close}\nb"), "a\n<SECRET>\nb");
        check(&format!("{{\"k\": \"{open}\\n{body}\\n{close}\\n\"}}"), "{\"k\": \"<SECRET>\\n\"}");
        check(&format!("a\n{open}\n{body}\n{body}"), "a\n<SECRET>");
        check(&format!("{{\"k\":\"{open}\\n{body}\\nab\"}}"), "{\"k\":\"<SECRET>\"}");
    }
    check(
        "it starts with -----BEGIN PRIVATE KEY----- and so on",
        "it starts with -----BEGIN PRIVATE KEY----- and so on",
    );
    let public = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ\n-----END PUBLIC KEY-----";
    check(public, public);
}

#[test]
fn literals_under_a_name_go() {
    for (text, expected) in [
        ("password = \"hunter2\"", "password = \"<SECRET>\""),
        ("token: 'abc123'", "token: '<SECRET>'"),
        ("password=x7kqsecret99zz", "password=<SECRET>"),
        ("password=Kq8secretZ9", "password=<SECRET>"),
        ("password=hunter2token", "password=<SECRET>"),
        ("let password: &str = \"hunter\";", "let password: &str = \"<SECRET>\";"),
        ("const apiKey: string = 'abc';", "const apiKey: string = '<SECRET>';"),
        ("{\"api_key\": \"x\", \"n\": 1}", "{\"api_key\": \"<SECRET>\", \"n\": 1}"),
        (
            "{\\\"password\\\":\\\"x\\\",\\\"a\\\":1}",
            "{\\\"password\\\":\\\"<SECRET>\\\",\\\"a\\\":1}",
        ),
        (
            "\\\\\\\"clientSecret\\\\\\\": \\\\\\\"a b\\\\\\\"",
            "\\\\\\\"clientSecret\\\\\\\": \\\\\\\"<SECRET>\\\\\\\"",
        ),
        ("{\"password\": \"a\\\"b\\\\\"}", "{\"password\": \"<SECRET>\"}"),
        ("config['password'] = 'a\"b'", "config['password'] = '<SECRET>'"),
        ("\"password\": 12345678}", "\"password\": \"<SECRET>\"}"),
        ("<password>hunter2</password>", "<password><SECRET></password>"),
        ("if password == \"hunter2\" {", "if password == \"<SECRET>\" {"),
        ("connectionString=\"Server=x;Password=y\"", "connectionString=\"<SECRET>\""),
        ("passphrase: \"correct horse battery staple\"", "passphrase: \"<SECRET>\""),
        (".password(\"hunter2\")", ".password(\"<SECRET>\")"),
        ("\"password\" : \"a b c\"", "\"password\" : \"<SECRET>\""),
        ("pass: \"hunter2\"", "pass: \"<SECRET>\""),
        ("your password: Ab1&Z1. Keep", "your password: <SECRET>. Keep"),
        ("password: P@ss(w)1,x\\n", "password: <SECRET>\\n"),
        ("password=Ab1cdef&user=x", "password=<SECRET>&user=x"),
        ("**Password:** hunter2", "**Password:** <SECRET>"),
        ("a key, password: hunter22, order", "a key, password: <SECRET>, order"),
        ("(password: hunter22)", "(password: <SECRET>)"),
        ("the secret: Xy7kQz99, user", "the secret: <SECRET>, user"),
    ] {
        check(text, expected);
    }
}

#[test]
fn bare_values_go_where_the_form_says_so() {
    for (text, expected) in [
        ("DB_PASSWORD=hunter", "DB_PASSWORD=<SECRET>"),
        ("export DB_PASSWORD=p@ss,w;rd", "export DB_PASSWORD=<SECRET>"),
        ("A=1\\nDB_PASSWORD=hunter\\nB=2", "A=1\\nDB_PASSWORD=<SECRET>\\nB=2"),
        ("--password hunter2 -v", "--password <SECRET> -v"),
        ("--token=abcdef", "--token=<SECRET>"),
        ("password=hunter2", "password=<SECRET>"),
        ("password=12345678", "password=<SECRET>"),
        ("password: hunter2\n", "password: <SECRET>\n"),
        ("  secret_key: 9f8e7d6c5b\n", "  secret_key: <SECRET>\n"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz",
            "AWS_SECRET_ACCESS_KEY=<SECRET>",
        ),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz",
            "aws_secret_access_key = <SECRET>",
        ),
        (
            "Server=db;User Id=sa;Password=plain;Pooling=1",
            "Server=db;User Id=sa;Password=<SECRET>;Pooling=1",
        ),
        ("https://h/p?token=plain&x=1", "https://h/p?token=<SECRET>&x=1"),
        ("?a=1&X-Amz-Signature=0123456789abcdef&b", "?a=1&X-Amz-Signature=<SECRET>&b"),
        ("API key: 0a1b2c3d4e5f", "API key: <SECRET>"),
        (
            "//registry.npmjs.org/:_authToken=0a1b2c3d-4e5f",
            "//registry.npmjs.org/:_authToken=<SECRET>",
        ),
        ("k=v;AccountKey=Zm9vYmFyYmF6cXV4==;E=c", "k=v;AccountKey=<SECRET>;E=c"),
        ("secret_access_key=abcdefghijklmnopqrstuvwxyz", "secret_access_key=<SECRET>"),
        ("X-Api-Key: plain\n", "X-Api-Key: <SECRET>\n"),
        ("the password is hunter42!", "the password is <SECRET>!"),
        ("password: hunter2hunter2  =`", "password: <SECRET>  =`"),
        ("password: complex128 = \"hunter2hunter2\"", "password: complex128 = \"<SECRET>\""),
        ("password: hunter2hunter2<EMAIL>", "password: <SECRET><EMAIL>"),
        ("password: Hunter2hunter2<EMAIL>", "password: <SECRET><EMAIL>"),
        ("password=hunter2hunter2<br>", "password=<SECRET><br>"),
        ("API_KEY=abcd1234efgh5678<memory", "API_KEY=<SECRET><memory"),
    ] {
        check(text, expected);
    }
}

/// Code, prose and settings that only mention secrets.
const INNOCENT: &[&str] = &[
    "--- PASS: TestParse/with_tag_0x0a (0.00s)",
    "gho_****************",
    "token: CancellationToken",
    "token = self.next_token()",
    "let token = parse(input)?",
    "tokens: 512",
    "max_tokens = 4096",
    "\"completion_tokens\": 12",
    "password: str",
    "password: String,",
    "{ password: hash2, salt: salt2 }",
    "(password: sha256, rounds: 10)",
    "secret: Option<String>",
    "if (password === confirm)",
    "api_key_env = \"OPENAI_API_KEY\"",
    "API_KEY=$OPENAI_API_KEY",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "os.environ[\"TOKEN\"]",
    "process.env.API_KEY",
    "password: <your password>",
    "password=***",
    "token=<SECRET>",
    "primary_key: id",
    "key = \"name\"",
    "keyboard: x",
    "public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI",
    "author: ann",
    "tokenizer: x",
    "commit 0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "the secret is to wait",
    "Password: required",
    "the token expires after 15 minutes",
    "password reset",
    "Secret Manager",
    "token: u64",
    "token = tokens[0]",
    "password = get_password2()",
    "token: token2,",
    "password=password1",
    "API_KEY=\"$KEY\"",
    "API_KEY=${KEY:-x}",
    "password: process.env.DB_PASSWORD2",
    "secret: null",
    "TOKEN=",
    "token = os.getenv(\"API_TOKEN\", \"\")",
    "f\"password: {password}\"",
    "println!(\"password: \"); x(\"a\");",
    "\"password: \" + pw + \"x\"",
    "fn token(&self) -> &str",
    "Token::new(x)",
    "self.token == other.token",
    "token.len() == 3",
    "credentials: 'include'",
    "\"password\": \"Please enter your password\"",
    "PWD=/home/ann",
    "eos_token = \"</s>\"",
    "Authorization: required",
    "Authorization: `Bearer ${token}`",
    "\"Authorization\": \"Bearer \" + t",
    "Bearer token authentication",
    "https://host:8080/a@b",
    "git@github.com:a/b.git",
    "ssh://git@host/x",
    "risk-taking, sk-learn and disk-usage",
    "npm_config_cache",
    "hf_hub_download",
    "eyJust a word",
    "pub password: Option<SecretString>,",
    "password: z.string().min(8)",
    "type Token = String;",
    "--token to pass",
    "use `--password`",
    "--password PASSWORD",
    "token: Token<'a>",
    "secretKeyRef: x",
    "cookie: Cookie",
    "cookies = jar",
    "access_token: str | None = None",
    "token_count=12",
    "\"token\": null",
    "pass: 12 fail: 3",
    "pin = 1234",
    "docker run -u 1000:1000 curl",
    "signature: Signature",
    "password = input()",
    "password: required",
    "password: string",
    "secret: true",
    "api_key: None",
    "password = password",
    "pass = true",
    "pass: 12, fail: 3",
    "tests pass: yes",
    "token = next_token",
    "password = oauth2Token",
    "token = s3_secret2",
    "token: k8sCredential",
    "password: text",
    "the password: see below",
    "PASS: test_parse2",
    "PASS: tests/parse2.rs",
    "    password = user_input",
    "secret: Buffer",
    "password: missing",
];

#[test]
fn what_is_no_secret_stays() {
    for text in INNOCENT {
        check(text, text);
    }
}

/// Text around secrets.
fn around() -> impl Strategy<Value = String> {
    let words = [
        "", " ", "a", "\n", "key: ", "\"", "'", "`", "{", "}", "\\", "\\n", "=", ":", "password ",
        "token", "<", ">", "x y", "\u{15f}", "https://", "@", ";", "-----BEGIN ", "(", "sk-",
        "eyJ",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..6)
        .prop_map(|words| words.concat())
}

fn leaks(text: &str, secret: &str) -> bool {
    text.contains(secret)
}

proptest! {
    #[test]
    fn no_planted_shape_survives(before in around(), after in around(), at in 0_usize..33) {
        let secret = &shapes()[at];
        let text = format!("{before} {secret} {after}");
        prop_assert!(!leaks(&masked(&text), secret), "{}", text);
    }

    #[test]
    fn no_named_secret_survives(
        name in prop::sample::select(vec!["password", "DB_PASSWORD", "apiKey", "client_secret", "githubToken", "x-api-key"]),
        secret in "[a-zA-Z0-9!#%^*+/_.-]{6,16}[A-Z][0-9]{3}",
        form in 0_usize..6,
        before in prop::sample::select(vec!["", "a ", "\n", "{", "x, "]),
    ) {
        let text = match form {
            0 => format!("{before}\"{name}\": \"{secret}\""),
            1 => format!("{before}{name} = '{secret}'"),
            2 => format!("{before}{{\\\"{name}\\\":\\\"{secret}\\\"}}"),
            3 => format!("{before}--{name} \"{secret}\""),
            4 => format!("export {}={secret}", name.to_uppercase().replace('-', "_")),
            _ => format!("https://h/x?{name}={}&b=1", secret.replace(['#', '%'], "")),
        };
        prop_assert!(!leaks(&masked(&text), &secret), "{}", text);
    }

    #[test]
    fn json_stays_json(
        pairs in prop::collection::vec((
            prop::sample::select(vec!["password", "note", "token", "Authorization", "Cookie", "url", "k", "api_key", "pwd"]),
            prop::collection::vec(prop::sample::select(vec![
                "hunter2", "\"", "'", "\\", "\n", " ", "Bearer ", "password=", "token: ", "TOKEN='", "secret=\"", "a1b2c3d4e5", "}",
                ",", ":", "https://u:p", "@h", "sid=abcdef;", "-----BEGIN PRIVATE KEY-----", "\nMIIEpAIBAAKCAQEA0Z3VS5", "-----END ",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x", "{\"password\":\"x\"}", "\u{15f}", "`", "curl -u a:b", "]", "<", ">",
                "[\"a1b2c3d4\"]", "Digest a=\"b\"", "mysql -px'", "\"name\":\"token\",", "\"value\":", "letmein", "\u{200b}", "\x1b[1m", "curl -u \\\n a:b1",
                "[\"curl\",\"-u\",\"a:b1\"]", "args:\n- -u\n- a:b1\n", "recovery codes: a1b2c3", "user bob, pass: ", "user: bob, password: marshtulip", "identified by '", ";Pwd={", "|| "
            ]), 0..7)), 1..5),
        number in prop::option::of(0_i64..1_000_000_000),
        depth in 1_usize..4,
    ) {
        let mut object = serde_json::Map::new();
        for (key, words) in pairs {
            object.insert(key.to_owned(), words.concat().into());
        }
        if let Some(number) = number {
            object.insert("password".to_owned(), number.into());
        }
        let mut text = serde_json::Value::Object(object).to_string();
        for _ in 1..depth {
            text = serde_json::json!({"text": text, "n": [1]}).to_string();
        }
        let mut masked_text = masked(&text);
        for _ in 0..depth {
            let value: Result<serde_json::Value, _> = serde_json::from_str(&masked_text);
            prop_assert!(value.is_ok(), "{}\n{}", text, masked_text);
            let value = value.unwrap_or_default();
            match value.get("text").and_then(|text| text.as_str()) {
                Some(inner) => masked_text = inner.to_owned(),
                None => break,
            }
        }
    }
}
