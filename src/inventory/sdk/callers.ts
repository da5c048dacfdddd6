import { callAudience, managerAccount } from '../../api/inventory/names.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { openCluster } from '../../kube/open-cluster.ts';

/** Who may ask a component for a run. */
export interface Callers {
  /** Whether the token is that of the server, meant for this component. Rejects when that cannot be found out now. */
  isServer(token: string, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
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
export function tokenReviews({ credentials, component, serverNamespace, clock }: CallerOptions): Callers {
  const audiences = [callAudience(component)];
  const account = `system:serviceaccount:${serverNamespace}:${managerAccount}`;
  const cluster = openCluster(credentials, { clock });
  return {
    isServer: async (token, signal) =>
      (await cluster.client.reviewToken(token, { audiences, signal }))?.username === account,
    close: () => cluster.close(),
  };
}
