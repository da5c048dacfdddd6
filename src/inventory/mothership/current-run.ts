import type { RunRecord } from '../core/run-record.ts';
import type { RunToken } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { Sight } from './look.ts';

/** What this process started a run with. */
interface Start {
  readonly sight: Sight;
  readonly token: RunToken;
}

/** The run that is on. Its registration is the one that it was started with. */
export class CurrentRun {
  readonly seq: number;
  readonly registration: Registration;
  /** The version of the entry that it was started with; undefined when another process started it. */
  readonly sight: Sight | undefined;
  #token: RunToken | undefined;
  #withheld: RunToken | undefined;
  readonly #credentials: string[];

  constructor(record: RunRecord, registration: Registration, start?: Start) {
    this.seq = record.seq;
    this.registration = registration;
    this.sight = start?.sight;
    this.#token = start?.token;
    this.#credentials = [record.credentialId, record.previousCredential?.id].filter((id) => id !== undefined);
  }

  /** The one that it has now; undefined when another process gave it out. */
  get token(): RunToken | undefined {
    return this.#token;
  }

  /** One that it is to have once the record that names it is stored. */
  get withheld(): RunToken | undefined {
    return this.#withheld;
  }

  /** The ids of all tokens that it has had. */
  get credentials(): readonly string[] {
    return this.#credentials;
  }

  withhold(token: RunToken): void {
    this.#withheld = token;
  }

  /** It has this one besides the one before. */
  refreshed(token: RunToken): void {
    this.#token = token;
    this.#withheld = undefined;
    this.#credentials.push(token.id);
  }
}
