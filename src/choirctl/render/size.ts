/** An amount of bytes for people. */

const KIB = 1024
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"]

/** `512 bytes`, `1.5 KiB` or `12 MiB`: no amount but 0 is shown as nothing. */
export const sizeText = (bytes: number): string => {
  const unit = bytes < KIB ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(KIB)))
  const amount = bytes / KIB ** unit
  return `${unit === 0 || amount >= 10 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[unit]}`
}
