/** A database that refuses one event, as a real one refuses what it cannot hold. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Refuses an event of a session, with a code and words; gives what ends it. */
export const refuseEvent = Effect.fnUntraced(function* (session_id: string, rev: number, code: string, words: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.session_id = '${session_id}' AND NEW.rev = ${rev} THEN
      RAISE EXCEPTION '${words}' USING ERRCODE = '${code}';
    END IF;
    RETURN NEW; END $$`)
  yield* sql.unsafe(
    "CREATE TRIGGER refuse BEFORE INSERT ON choir_control.session_events FOR EACH ROW EXECUTE FUNCTION refuse()"
  )
  const allow = Effect.asVoid(sql.unsafe("DROP FUNCTION IF EXISTS refuse CASCADE"))
  // Tests share a database.
  yield* Effect.addFinalizer(() => Effect.orDie(allow))
  return allow
})
