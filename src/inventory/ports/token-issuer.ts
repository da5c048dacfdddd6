import type { Credential } from '../core/step.ts';
import type { Entry } from '../entry.ts';
import type { Registration } from '../registration.ts';

export interface RunToken extends Credential {
  readonly token: string;
}

/** Tokens. Signed, never stored. Rejects as the client of kube/ does. */
export interface TokenIssuer {
  /**
   * For one run: reads and updates this entry alone. Makes the account and its grants on first need and waits until they are in
   * force. `id` is what the fence will see, known before anybody has the token.
   */
  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<RunToken>;
  /** Proves to a component that we call, and to nobody else anything. Shared by calls until near its end. */
  forCall(component: string, signal: AbortSignal): Promise<string>;
}
