import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';
import { type Refusal, refuse } from './answers.ts';
import { castType, type LiveSession, type LiveViews } from './live-views.ts';
import type { RecordingName, RecordingSink } from './recording/sink.ts';
import type { Look, SessionAudit } from './session-audit.ts';

interface LooksDeps {
  readonly views: LiveViews;
  /** Undefined: this process stores no recordings. */
  readonly sink: Pick<RecordingSink, 'read'> | undefined;
  readonly audit: SessionAudit;
  readonly log: Log;
}

/** Shows open sessions and recordings to users whom the API server has authorized. Each look is in the journal before its first byte. */
export class Looks {
  readonly #deps: LooksDeps;

  constructor(deps: LooksDeps) {
    this.#deps = deps;
  }

  /** Answers the call. Rejects if the answer breaks off. */
  async answer(look: Look, response: ServerResponse): Promise<void> {
    const refusal = await (look.kind === 'session' ? this.#live(look, response) : this.#stored(look, response));
    if (!refusal) return;
    await this.#deps.audit.unseen(look, refusal);
    refuse(response, refusal);
  }

  async #live(look: Look, response: ServerResponse): Promise<Refusal | undefined> {
    const { views } = this.#deps;
    const session = views.find(look.name);
    if (!session) return notOpen(look.name);
    const { cast } = session;
    if (!cast) return nothingToShow(look.name);
    const refusal = await this.#admit(look, response, session);
    if (refusal || response.destroyed) return refusal;
    // It may have ended while the line was written.
    return views.show(session, cast, response) ? undefined : notOpen(look.name);
  }

  async #stored(look: Look, response: ServerResponse): Promise<Refusal | undefined> {
    const { sink, log } = this.#deps;
    let recording: Readable | undefined;
    try {
      recording = await sink?.read(look.name);
    } catch (error) {
      log.warn('cannot read a recording', { session: look.name.session, error: describe(error) });
      return unreadable;
    }
    if (!recording) return noRecording(look.name);
    const refusal = await this.#admit(look, response);
    if (refusal || response.destroyed) {
      recording.destroy();
      return refusal;
    }
    response.writeHead(200, { 'content-type': castType });
    await pipeline(recording, response);
    return undefined;
  }

  /** Takes a place for the answer, and writes the line. */
  async #admit(look: Look, response: ServerResponse, session?: LiveSession): Promise<Refusal | undefined> {
    const { views, audit } = this.#deps;
    const place = views.reserve(session);
    if (typeof place !== 'function') return place;
    response.once('close', place);
    if (response.destroyed) place();
    try {
      await audit.viewed(look, session?.record);
      return undefined;
    } catch (error) {
      return { status: 503, code: 'AuditUnavailable', message: describe(error) };
    }
  }
}

const notOpen = ({ namespace, session }: RecordingName): Refusal => ({
  status: 404,
  code: 'SessionNotOpen',
  message: `session ${session} is not open in namespace ${namespace}; list open sessions: drawbridge sessions list -n ${namespace}; or play its recording: drawbridge sessions play ${session} -n ${namespace}`,
});

const nothingToShow = ({ session }: RecordingName): Refusal => ({
  status: 400,
  code: 'NoTerminal',
  message: `session ${session} forwards ports, and has no terminal to watch; end it: drawbridge sessions kill ${session}`,
});

const noRecording = ({ namespace, session }: RecordingName): Refusal => ({
  status: 404,
  code: 'NoRecording',
  message: `the gateway has no recording of session ${session} in namespace ${namespace}; it was not recorded, or its recording was deleted; the journal says which`,
});

const unreadable: Refusal = {
  status: 503,
  code: 'RecordingUnreadable',
  message:
    'the gateway cannot read the recording now; try again, or ask an administrator, who finds the reason in the log of the gateway',
};
