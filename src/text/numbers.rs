//! Words for numbers and units in several languages. Words that are also common English words, such
//! as the Spanish `once`, are left out.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Numbers with their words.
const NUMBERS: &str = "0 zero zéro cero sıfır|1 one eins un une uno una bir|2 two zwei deux dos iki|\
    3 three drei trois tres üç|4 four vier quatre cuatro dört|5 five fünf cinq cinco beş|\
    6 six sechs seis altı|7 seven sieben sept siete yedi|8 eight acht huit ocho sekiz|\
    9 nine neun neuf nueve dokuz|10 ten zehn dix diez|11 eleven elf onze|12 twelve zwölf douze doce|\
    13 thirteen dreizehn treize trece|14 fourteen vierzehn quatorze catorce|\
    15 fifteen fünfzehn quinze quince|16 sixteen sechzehn|17 seventeen siebzehn|18 eighteen achtzehn|\
    19 nineteen neunzehn|20 twenty zwanzig vingt veinte yirmi|30 thirty dreißig trente treinta otuz|\
    40 forty vierzig quarante cuarenta kırk|50 fifty fünfzig cinquante cincuenta elli|\
    60 sixty sechzig soixante sesenta altmış|70 seventy siebzig setenta yetmiş|\
    80 eighty achtzig ochenta seksen|90 ninety neunzig noventa doksan";
/// Units by dimension: the words, and the amount in the smallest unit of the dimension. Months and
/// years are not multiples of days.
const UNITS: [(&str, &str, u64); 32] = [
    ("time", "ms msec millisecond milliseconds millisekunde millisekunden", 1),
    (
        "time",
        "s sec secs second seconds sekunde sekunden segundo segundos seconde secondes saniye 秒",
        1_000,
    ),
    ("time", "min mins minute minutes minuten minuto minutos dakika 分", 60_000),
    ("time", "h hr hrs hour hours stunde stunden hora horas heure heures saat 時間", 3_600_000),
    ("time", "d day days tag tage tagen día días dia dias jour jours gün 日", 86_400_000),
    ("time", "week weeks woche wochen semana semanas semaine semaines hafta", 604_800_000),
    ("months", "month months monat monate monaten mes meses mois ay", 1),
    ("months", "year years jahr jahre jahren año años an ans année années yıl", 12),
    ("bytes", "b byte bytes", 1),
    ("bytes", "kb kilobyte kilobytes", 1_000),
    ("bytes", "mb megabyte megabytes", 1_000_000),
    ("bytes", "gb gigabyte gigabytes", 1_000_000_000),
    ("bytes", "tb terabyte terabytes", 1_000_000_000_000),
    ("bytes", "kib", 1_024),
    ("bytes", "mib", 1_048_576),
    ("bytes", "gib", 1_073_741_824),
    ("bytes", "tib", 1_099_511_627_776),
    ("percent", "% percent prozent pourcent yüzde", 1),
    ("money", "cent cents céntimo céntimos centime centimes", 1),
    ("money", "€ euro euros", 100),
    ("dollars", "$ dollar dollars", 1),
    ("pixels", "px pixel pixels", 1),
    ("mass", "mg milligram milligrams milligramm", 1),
    ("mass", "g gram grams gramm gramme grammes gramo gramos", 1_000),
    (
        "mass",
        "kg kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramos",
        1_000_000,
    ),
    ("length", "mm millimetre millimetres millimeter millimeters", 1),
    ("length", "cm centimetre centimetres centimeter centimeters zentimeter", 10),
    ("length", "metre metres meter meters mètre mètres metro metros", 1_000),
    ("length", "km kilometre kilometres kilometer kilometers kilómetros", 1_000_000),
    ("volume", "ml millilitre millilitres milliliter milliliters", 1),
    ("volume", "l litre litres liter liters litro litros", 1_000),
    ("temperature", "degree degrees grad degré degrés grado grados", 1),
];

static NUMBER_WORDS: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
    let numbers = NUMBERS.split('|').filter_map(|number| number.split_once(' '));
    numbers
        .flat_map(|(value, words)| words.split(' ').map(move |word| (word, value)))
        .filter_map(|(word, value)| Some((word, value.parse().ok()?)))
        .collect()
});
static UNIT_WORDS: LazyLock<HashMap<&str, Unit>> = LazyLock::new(|| {
    let words = |&(dimension, words, scale): &(&'static str, &'static str, u64)| {
        words.split(' ').map(move |word| (word, Unit { dimension, scale }))
    };
    UNITS.iter().flat_map(words).collect()
});

/// A unit of measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dimension: &'static str,
    /// Amount in the smallest unit of the dimension.
    pub(crate) scale: u64,
}

/// Number that a folded word means.
pub(crate) fn number(word: &str) -> Option<u64> {
    NUMBER_WORDS.get(word).copied()
}

/// Unit that a lower-case word means.
pub(crate) fn unit(word: &str) -> Option<Unit> {
    UNIT_WORDS.get(word).copied()
}
