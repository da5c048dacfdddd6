import { callAudience, managerAccount } from '../../api/inventory/names.ts';
import type { Clock } from '../../kit/clock.ts';
import { listIn, own } from '../../kit/json-value.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { JsonCaller } from '../../kube/json-call.ts';
import { toApiError } from '../../kube/status-error.ts';

/** Who may ask a component for a run. */
export interface Callers {
  /** Whether the token is that of the server, meant for this component. Rejects when that cannot be found out now. */
  isServer(token: string, signal: AbortSignal): Promise<boolean>;
  close(): void;
}

interface CallerOptions {
  /** Of the component itself; they need the right to create TokenReviews. */
  readonly credentials: Credentials;
  readonly component: string;
  /** Where the server runs: the namespace of its Lease. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** Asks the API server, by TokenReview. */
export async function tokenReviews(options: CallerOptions): Promise<Callers> {
  const { credentials, component, serverNamespace, clock } = options;
  const audience = callAudience(component);
  const account = `system:serviceaccount:${serverNamespace}:${managerAccount}`;
  const caller = new JsonCaller((await credentials.material()).tls, clock);
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' };
  return {
    async isServer(token, signal) {
      const { status, headers, body } = await caller.call({
        method: 'POST',
        url: new URL(`${credentials.server}/apis/authentication.k8s.io/v1/tokenreviews`),
        headers: (await credentials.material()).headers,
        body: { ...review, spec: { token, audiences: [audience] } },
        signal,
      });
      const text = body.toString('utf8');
      if (status < 200 || status > 299) throw toApiError(status, headers['retry-after'], text);
      const found = own(JSON.parse(text), 'status');
      return (
        own(found, 'authenticated') === true &&
        own(own(found, 'user'), 'username') === account &&
        listIn(found, 'audiences').includes(audience)
      );
    },
    close: () => caller.close(),
  };
}
