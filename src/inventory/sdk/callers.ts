import { callAudience, managerAccount } from '../../api/inventory/names.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { openCluster } from '../../kube/open-cluster.ts';

/** Authenticates the callers of a component. */
export interface CallerAuthenticator {
  /** Whether the token belongs to the server and is valid for this component. Rejects if the TokenReview fails. */
  isServer(token: string, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

interface CallerOptions {
  /** Credentials of the component itself. They need permission to create TokenReviews. */
  readonly credentials: Credentials;
  readonly component: string;
  /** Namespace of the server and its Lease. */
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** Authenticates callers by TokenReview with the audience of the component. */
export function tokenReviewAuthenticator({
  credentials,
  component,
  serverNamespace,
  clock,
}: CallerOptions): CallerAuthenticator {
  const audiences = [callAudience(component)];
  const account = `system:serviceaccount:${serverNamespace}:${managerAccount}`;
  const cluster = openCluster(credentials, { clock });
  return {
    isServer: async (token, signal) =>
      (await cluster.client.reviewToken(token, { audiences, signal }))?.username === account,
    close: () => cluster.close(),
  };
}
