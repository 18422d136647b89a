/** Names in `logs/archive/<source>/`: choird gives them, choirctl reads on in them when a log was rotated. */

const NAME = /^(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3}Z)\.log(?:\.gz)?$/u

/** The time in an archive's name, as which names sort; `undefined` for any other file. */
export const archiveStem = (name: string): string | undefined => NAME.exec(name)?.[1]

/** @param gz whether it is already compressed. */
export const archiveName = (stem: string, gz: boolean): string => `${stem}.log${gz ? ".gz" : ""}`
