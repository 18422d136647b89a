/** Names that arguments of tools usually have which say whom, what or where a call reaches. They rank a card and bound `x-grant`; nothing is allowed by them. */

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/u))

export const RECIPIENTS = words(
  `to cc bcc from recipient recipients address addresses user users user_id channel channels chat chat_id group groups phone number account
  telephone tel mobile fax sms whatsapp team teams room rooms calendar calendars
  empfänger empfaenger telefon handynummer konto destinataire destinataires téléphone compte destinatario destinatarios teléfono telefono cuenta
  destinatário destinatários telefone conta ontvanger rekening odbiorca mottagare alıcı получатель телефон счет счёт 收件人 电话 账户 宛先 電話 口座 받는사람 전화`
)
export const PATHS = words(
  "path paths file files folder folders dir directory cwd root source sources destination target output attachment attachments"
)
export const HOSTS = words("url urls uri href link endpoint host hostname domain server origin website")
/** Arguments that are programs: their text decides everything. */
const PROGRAMS = words(
  "command commands cmd cmdline argv args code script program sql query statement expression shell eval javascript"
)
/** Arguments that are money, or how much of something. */
export const AMOUNTS = words(
  "amount price sum total quantity currency betrag summe preis menge montant prix somme importe precio cantidad importo prezzo valor preço bedrag kwota cena сумма цена 金额 金額 价格 数量 금액"
)
/** Arguments that are money, an account of it, or a time. */
const VALUES: ReadonlySet<string> = new Set([...AMOUNTS, ...words("iban bic date time when due")])

const DECIDING = [
  ["a recipient", RECIPIENTS],
  ["a path", PATHS],
  ["an address", HOSTS],
  ["a program", PROGRAMS],
  ["an amount, an account or a date", VALUES]
] as const

/** The thing that an argument decides, by its name or a part of it between `_`, `-` or capitals; `undefined` for a name such as `text`. */
export const decidedBy = (name: string): string | undefined => {
  const whole = name.toLowerCase()
  const parts = name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1_$2")
    .toLowerCase()
    .split(/[_\-.]/u)
  return DECIDING.find(([, names]) => names.has(whole) || parts.some((part) => names.has(part)))?.[0]
}
