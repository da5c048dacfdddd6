import { callAudience } from './contract.ts';
import { apiVersionOf, type KubeClient, tokenReviews } from './kubernetes.ts';
import { listIn, own } from './values.ts';

export interface CallerAuthenticator {
  /** Whether the server calls this component with the token. Rejects if the TokenReview fails. */
  isServer(token: string, signal: AbortSignal): Promise<boolean>;
}

interface CallerOptions {
  /** With permission to create TokenReviews. */
  readonly client: Pick<KubeClient, 'create'>;
  readonly component: string;
  /** `system:serviceaccount:NAMESPACE:drawbridge-inventory`. */
  readonly serverAccount: string;
}

/** By TokenReview with the audience of the component. */
export function tokenReviewAuthenticator({ client, component, serverAccount }: CallerOptions): CallerAuthenticator {
  const audience = callAudience(component);
  const kind = { apiVersion: apiVersionOf(tokenReviews), kind: tokenReviews.kind };
  return {
    isServer: async (token, signal) => {
      const spec = { token, audiences: [audience] };
      const { status } = await client.create(tokenReviews, { ...kind, metadata: { name: '' }, spec }, { signal });
      return (
        own(status, 'authenticated') === true &&
        listIn(status, 'audiences').includes(audience) &&
        own(own(status, 'user'), 'username') === serverAccount
      );
    },
  };
}
