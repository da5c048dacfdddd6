import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';
import { type Refusal, refuse } from './answers.ts';
import { castType, type LiveViews, nothingToShow, notOpen, tooManyViewers } from './live-views.ts';
import type { Peers } from './peers.ts';
import type { RecordingName, RecordingSink } from './recording/sink.ts';
import type { SessionAudit, SessionRecord, ViewCall } from './session-audit.ts';

/** The replica of an open session, by its AccessSession and the Lease of the replica. */
export interface Holder {
  readonly replica: string;
  /** `IP:port`, if the Lease names it. */
  readonly address: string | undefined;
  /** The request and the Pod of the session, for the journal. */
  readonly record: Pick<SessionRecord, 'request' | 'pod'>;
}

interface ViewHandlerDeps {
  readonly views: LiveViews;
  /** Absent: this process stores no recordings. */
  readonly sink: Pick<RecordingSink, 'read'> | undefined;
  /** Another replica that holds the session. */
  readonly holderOf: (name: RecordingName) => Holder | undefined;
  readonly peers: Pick<Peers, 'open'>;
  readonly audit: SessionAudit;
  readonly log: Log;
}

/**
 * Shows sessions and recordings to users whom the API server has authorized. It writes the audit
 * line of a view before its first byte.
 */
export class ViewHandler {
  readonly #deps: ViewHandlerDeps;

  constructor(deps: ViewHandlerDeps) {
    this.#deps = deps;
  }

  /** Mistakes of the user, and failures of another replica or of the storage, become refusals. */
  async answer(call: ViewCall, response: ServerResponse): Promise<void> {
    const refusal = await (call.kind === 'session' ? this.#live(call, response) : this.#stored(call, response));
    if (!refusal) return;
    await this.#deps.audit.viewDenied(call, refusal);
    refuse(response, refusal);
  }

  async #live(call: ViewCall, response: ServerResponse): Promise<Refusal | undefined> {
    const { views, holderOf } = this.#deps;
    const view = views.admit(call.name);
    if ('status' in view) {
      const holder = view.code === 'SessionNotOpen' ? holderOf(call.name) : undefined;
      return holder ? this.#remote(call, response, holder) : view;
    }
    whenClosed(response, view.release);
    const refusal = await this.#recordView(call, view.session.record);
    if (refusal || response.destroyed) return refusal;
    // The session may have ended while the audit line was written.
    return views.show(view, response) ? undefined : notOpen(call.name);
  }

  async #remote(call: ViewCall, response: ServerResponse, { replica, address, record }: Holder) {
    const { peers, log } = this.#deps;
    const full = this.#reservePlace(response);
    if (full) return full;
    const abort = new AbortController();
    whenClosed(response, () => abort.abort());
    let answer: IncomingMessage;
    try {
      if (address === undefined)
        throw new Error(
          'the Lease of the replica names no address; start each replica of the gateway with --peer-address',
        );
      answer = await peers.open(address, call.name, abort.signal);
    } catch (error) {
      if (!response.destroyed)
        log.warn('cannot show the session of another replica', { ...call.name, replica, error: describe(error) });
      return unreachable(call.name, replica);
    }
    const refused = refusalOf(answer.statusCode, call.name, replica);
    if (refused?.code === 'ReplicaUnreachable')
      log.warn('cannot show the session of another replica', { ...call.name, replica, status: answer.statusCode });
    const refusal = refused ?? (await this.#recordView(call, record));
    if (!refusal) return this.#send(call, answer, response);
    abort.abort();
    return refusal;
  }

  async #stored(call: ViewCall, response: ServerResponse): Promise<Refusal | undefined> {
    const { sink, log } = this.#deps;
    const full = this.#reservePlace(response);
    if (full) return full;
    let recording: Readable | undefined;
    try {
      recording = await sink?.read(call.name);
    } catch (error) {
      log.warn('cannot read a recording', { ...call.name, error: describe(error) });
      return unreadable;
    }
    if (!recording) return noRecording(call.name);
    const refusal = await this.#recordView(call);
    if (!refusal) return this.#send(call, recording, response);
    recording.destroy();
    return refusal;
  }

  /** Holds a place for a viewer until the answer closes. Returns the refusal if none is free. */
  #reservePlace(response: ServerResponse): Refusal | undefined {
    const place = this.#deps.views.reserve();
    if (typeof place !== 'function') return place;
    whenClosed(response, place);
    return undefined;
  }

  /** Resolves to the refusal if the audit line cannot be written. */
  async #recordView(call: ViewCall, record?: Holder['record']): Promise<Refusal | undefined> {
    try {
      await this.#deps.audit.viewed(call, record);
      return undefined;
    } catch (error) {
      return { status: 503, code: 'AuditUnavailable', message: describe(error) };
    }
  }

  async #send({ kind, name }: ViewCall, from: Readable, response: ServerResponse): Promise<undefined> {
    if (!response.destroyed) response.writeHead(200, { 'content-type': castType });
    await pipeline(from, response).catch((error: unknown) => {
      // The user may leave at any time.
      const isGone = error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
      if (!isGone) this.#deps.log.warn(`cannot show the rest of a ${kind}`, { ...name, error: describe(error) });
    });
  }
}

function whenClosed(response: ServerResponse, listener: () => void): void {
  if (response.destroyed) listener();
  else response.once('close', listener);
}

/** Nothing if the other replica answers with a view. */
function refusalOf(status: number | undefined, name: RecordingName, replica: string): Refusal | undefined {
  if (status === 200) return undefined;
  const known = [notOpen(name), nothingToShow(name), tooManyViewers].find((refusal) => refusal.status === status);
  return known ?? unreachable(name, replica);
}

const unreachable = ({ session }: RecordingName, replica: string): Refusal => ({
  status: 503,
  code: 'ReplicaUnreachable',
  message: `session ${session} is open in replica ${replica} of the gateway, which this replica cannot reach; try again, or ask an administrator, who finds the reason in the log of the gateway`,
});

const noRecording = ({ namespace, session }: RecordingName): Refusal => ({
  status: 404,
  code: 'NoRecording',
  message: `the gateway has no recording of session ${session} in namespace ${namespace}; check the namespace; if the session was recorded, or its recording was deleted, the audit journal has a line about that`,
});

const unreadable: Refusal = {
  status: 503,
  code: 'GatewayFailed',
  message:
    'the gateway cannot read the recording now; try again, or ask an administrator, who finds the reason in the log of the gateway',
};
