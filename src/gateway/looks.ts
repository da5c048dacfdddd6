import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';
import { type Refusal, refuse } from './answers.ts';
import { castType, type LiveViews, nothingToShow, notOpen, tooManyViewers } from './live-views.ts';
import type { Peers } from './peers.ts';
import type { RecordingName, RecordingSink } from './recording/sink.ts';
import type { Look, SessionAudit, SessionRecord } from './session-audit.ts';

/** The replica that holds an open session, by the objects that the gateway writes. */
export interface Holder {
  readonly replica: string;
  /** `IP:port`; undefined if the replica does not say. */
  readonly address: string | undefined;
  /** Whose session it is, for the journal. */
  readonly record: Pick<SessionRecord, 'request' | 'pod'>;
}

interface LooksDeps {
  readonly views: LiveViews;
  /** Undefined: this process stores no recordings. */
  readonly sink: Pick<RecordingSink, 'read'> | undefined;
  /** The other replica that holds the session; undefined if none does. */
  readonly holderOf: (name: RecordingName) => Holder | undefined;
  readonly peers: Pick<Peers, 'open'>;
  readonly audit: SessionAudit;
  readonly log: Log;
}

/** Shows open sessions and recordings to users whom the API server has authorized. Each look is in the journal before its first byte. */
export class Looks {
  readonly #deps: LooksDeps;

  constructor(deps: LooksDeps) {
    this.#deps = deps;
  }

  /** Answers the call. Never rejects because of the user, a replica, or the storage. */
  async answer(look: Look, response: ServerResponse): Promise<void> {
    const refusal = await (look.kind === 'session' ? this.#live(look, response) : this.#stored(look, response));
    if (!refusal) return;
    await this.#deps.audit.unseen(look, refusal);
    refuse(response, refusal);
  }

  async #live(look: Look, response: ServerResponse): Promise<Refusal | undefined> {
    const { views, holderOf } = this.#deps;
    const view = views.admit(look.name);
    if ('status' in view) {
      const holder = view.code === 'SessionNotOpen' ? holderOf(look.name) : undefined;
      return holder ? this.#remote(look, response, holder) : view;
    }
    whenClosed(response, view.release);
    const refusal = await this.#write(look, view.session.record);
    if (refusal || response.destroyed) return refusal;
    // It may have ended while the line was written.
    return views.show(view, response) ? undefined : notOpen(look.name);
  }

  /** Passes on the view of another replica. */
  async #remote(look: Look, response: ServerResponse, { replica, address, record }: Holder) {
    const { peers, log } = this.#deps;
    const place = this.#place(response);
    if (place) return place;
    const abort = new AbortController();
    whenClosed(response, () => abort.abort());
    let answer: IncomingMessage;
    try {
      if (address === undefined) throw new Error('its Lease has no address');
      answer = await peers.open(address, look.name, abort.signal);
    } catch (error) {
      if (!response.destroyed) log.warn('a replica does not show its session', { replica, error: describe(error) });
      return unreachable(look.name, replica);
    }
    const refusal = refusalOf(answer.statusCode, look.name, replica) ?? (await this.#write(look, record));
    if (!refusal) return this.#send(answer, response);
    abort.abort();
    return refusal;
  }

  async #stored(look: Look, response: ServerResponse): Promise<Refusal | undefined> {
    const { sink, log } = this.#deps;
    const place = this.#place(response);
    if (place) return place;
    let recording: Readable | undefined;
    try {
      recording = await sink?.read(look.name);
    } catch (error) {
      log.warn('cannot read a recording', { session: look.name.session, error: describe(error) });
      return unreadable;
    }
    if (!recording) return noRecording(look.name);
    const refusal = await this.#write(look);
    if (!refusal) return this.#send(recording, response);
    recording.destroy();
    return refusal;
  }

  /** Takes a place for the answer; or says why there is none. */
  #place(response: ServerResponse): Refusal | undefined {
    const place = this.#deps.views.reserve();
    if (typeof place !== 'function') return place;
    whenClosed(response, place);
    return undefined;
  }

  async #write(look: Look, record?: Holder['record']): Promise<Refusal | undefined> {
    try {
      await this.#deps.audit.viewed(look, record);
      return undefined;
    } catch (error) {
      return { status: 503, code: 'AuditUnavailable', message: describe(error) };
    }
  }

  async #send(from: Readable, response: ServerResponse): Promise<undefined> {
    if (!response.destroyed) response.writeHead(200, { 'content-type': castType });
    await pipeline(from, response).catch((error: unknown) => {
      // The user may leave at any time.
      const isGone = error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
      if (!isGone) this.#deps.log.warn('a view broke off', { error: describe(error) });
    });
  }
}

function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.destroyed) listener();
  else response.once('close', listener);
}

/** What the answer of another replica means for the user; undefined for a view. */
function refusalOf(status: number | undefined, name: RecordingName, replica: string): Refusal | undefined {
  if (status === 200) return undefined;
  const known = [notOpen(name), nothingToShow(name), tooManyViewers].find((refusal) => refusal.status === status);
  return known ?? unreachable(name, replica);
}

const unreachable = ({ session }: RecordingName, replica: string): Refusal => ({
  status: 503,
  code: 'ReplicaUnreachable',
  message: `session ${session} is open in replica ${replica} of the gateway, which this one cannot reach; try again, or ask an administrator, who finds the reason in the log of the gateway`,
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
