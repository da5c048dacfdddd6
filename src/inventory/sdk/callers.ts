import { callAudience, managerAccount } from '../../api/inventory/names.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { openCluster } from '../../kube/open-cluster.ts';

export interface CallerAuthenticator {
  /** Whether the server calls this component with the token. Rejects if the TokenReview fails. */
  isServer(token: string, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

interface CallerOptions {
  /** Of the component. They need permission to create TokenReviews. */
  readonly credentials: Credentials;
  readonly component: string;
  readonly serverNamespace: string;
  readonly clock: Clock;
}

/** By TokenReview with the audience of the component. */
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
