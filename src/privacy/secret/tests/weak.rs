//! Secrets in forms that say little, so that only a value that looks like a secret is masked.

use super::check;

/// Checks each form with values that people choose; `{}` is the value.
#[track_caller]
fn check_forms(forms: &[&str]) {
    for form in forms {
        for value in ["Tr0ub4dor-9x", "k7Lq9vTx2Z", "h4rbor-m1st-22", "Winter2024"] {
            check(&form.replace("{}", value), &form.replace("{}", "<SECRET>"));
        }
    }
}

#[test]
fn sentences_about_a_variable_or_a_name_go() {
    check_forms(&[
        "I set MYSQL_ROOT_PASSWORD to {} in the compose file",
        "GRAFANA_ADMIN_PASSWORD is now {} on staging",
        "ich habe DB_PASSWORD auf {} gesetzt",
        "{} is the root password on that box",
        "{} ist das Passwort für den Server",
        "{}! est le mot de passe du serveur",
        "changed the grafana admin pw from admin to {}",
        "I changed the password from changeme to {}",
        "with API key {} you get 200",
        "using the api key {} returns 403",
        "password generator: {}",
    ]);
}

#[test]
fn answers_on_the_line_after_a_question_go() {
    check_forms(&[
        "what's the db password?\nassistant: it's {}",
        "user: which password does the wiki use?\n\nassistant: It is {}.",
        "wie lautet das Passwort?\nes ist {}",
        "what is the root password for that VM?\n{}",
        "{\"text\":\"what's the vpn password?\\nbob: sure, it's {}\"}",
    ]);
}

#[test]
fn logins_with_a_user_go() {
    check_forms(&[
        "just log in as ops with {}",
        "log in as anna using {}",
        "admin/{} should get you into the jenkins",
        "root:{} gets you in",
        "{} gets you into the box",
        "Zugangsdaten fürs Testsystem: admin / {}",
        "creds for the jenkins: admin:{}",
        "Identifiants pour le wiki : admin / {}",
    ]);
}

#[test]
fn sentences_of_other_languages_go() {
    check_forms(&[
        "hab das Root-PW auf {} gesetzt",
        "ho cambiato la password in {}",
        "la password è stata cambiata in {}",
        "le code du wifi : {}",
        "ww is {}",
        "het ww van de server is {}",
        "hasło do panelu to {}",
        "lösenordet till servern är {}",
        "passordet er {}",
        "adgangskoden er {}",
        "sunucunun şifresi {}",
        "parolası {}",
        "пароль от сервера: {}",
    ]);
    for value in ["Ключ-42sobaka", "кот77Лампа"] {
        check(&format!("пароль от сервера: {value}"), "пароль от сервера: <SECRET>");
        check(&format!("новый пароль от вайфая {value}."), "новый пароль от вайфая <SECRET>.");
    }
}

#[test]
fn calls_scripts_and_commands_go() {
    check_forms(&[
        "page.fill('#password','{}')",
        "new Sequelize('shop','app','{}')",
        "login('anna','{}')",
        "sign_in(\"anna\", \"{}\")",
        "expect \"password:\"\nsend \"{}\\r\"",
        "expect \"*?assword:*\"\nsend -- \"{}\\n\"",
        "child.expect('Password:')\nchild.sendline('{}')",
        "echo {} > ~/.vault_pass",
        "echo -n '{}' >> /etc/app/db_password",
        "echo {} | tee /run/secret_pass",
        "rclone config create nas sftp host nas.local user bob pass {}",
        "rclone config update nas pass={}",
    ]);
    let key = "9f86d081884c7d659a2feaa0c55ad015";
    check(&format!("https://x.org/d?appid={key}&q=Rome"), "https://x.org/d?appid=<SECRET>&q=Rome");
}

#[test]
fn words_and_numbers_with_marks_go() {
    for value in [
        "blue_horse_42", "ACME_PROD_77", "Maple-77-Rusted", "md5_Kx9Lq", "level_up_42",
        "moon-77-long",
    ] {
        check(&format!("the token is {value}"), "the token is <SECRET>");
        let table = "| Token | Size |\n|---|---|\n| {} | 2 |";
        check(&table.replace("{}", value), &table.replace("{}", "<SECRET>"));
    }
    let text = "the password checker says k7Lq9vTx2Z is weak";
    check(text, "the password checker says <SECRET> is weak");
}

#[test]
fn look_alikes_of_these_forms_stay() {
    for text in [
        "Der Schlüssel der Tabelle ist kunde_id2",
        "the token is utf8-encoded",
        "the token is AES-256-encrypted",
        "my password manager is 1Password7",
        "password manager: we use 1Password8 here",
        "GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/sa.json",
        "| Token | Size |\n|---|---|\n| UINT16_BE | 2 |\n| IDENT_2 | 4 |",
        "api_key=\"Bearer {}\".format(key)",
        "api_key=\"Bearer %s\" % key",
        "Argon2id is the password hasher",
        "rename DB_PASSWORD to DB_PASS2",
        "DB_PASSWORD is read from config2.yaml",
        "what does the password test check?\nit's in login2.rs",
        "did you rotate the password?\nassistant: yes, commit 3f78685 did",
        "changed the pw check from sha1 to sha256",
        "log in as admin with OAuth2",
        "src/auth/v2.rs gets you into the code",
        "credentials for staging: see step2 / step3",
        "Zugangsdaten für das System: siehe Wiki",
        "login('anna', user.role)",
        "login('en', 'home2')",
        "expect \"login:\"\nsend \"anna2024\\r\"",
        "expect \"password:\"\nsend \"$password\\r\"",
        "echo hello2world > notes.txt",
        "echo build-v2024x > bypass.log",
        "echo build-v2024x > tokenizer/VERSION",
        "use Chrome120 to log in",
        "Windows11 to sign in",
        "log in as admin with Firefox128",
        "echo $PASS > ~/.vault_pass",
        "rclone config create nas sftp host nas.local pass $PASS",
        "?appid=com.example.app2&x=1",
        "пароль от сервера: спросить у Ани",
        "пароль нужно сменить до 31-декабря-2024",
        "пароль истекает в Октябре2024",
    ] {
        check(text, text);
    }
}
