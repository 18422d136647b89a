/** The version of Choir, as `--version`, `status`, backups and sessions name it. */
export const VERSION = "0.1.0"
