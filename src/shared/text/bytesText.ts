/** Bytes of a MiB, in which limits of the configuration are given. */
export const MIB = 1024 ** 2

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"]

/** A number of bytes for people, such as `1.2 GiB`. */
export const bytesText = (bytes: number): string => {
  const unit = Math.min(UNITS.length - 1, bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10))
  return `${(bytes / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`
}
