import type { Resource } from '../api/object.ts';
import { own } from '../kit/json-value.ts';
import { groupPath } from './api-paths.ts';
import type { AccessQuestion, CallOptions, ListOptions, TokenUser } from './client.ts';
import { TransportError } from './errors.ts';
import { listPages, type Page } from './list-pages.ts';
import { tokenUserOf } from './token-user.ts';
import type { Transport } from './transport.ts';

/** About the user of the credentials. Rejects as `Client` does. */
export interface OwnCalls {
  /** SelfSubjectReview. */
  whoAmI(options?: CallOptions): Promise<TokenUser>;
  /** SelfSubjectAccessReview. */
  isAllowed(question: OwnQuestion, options?: CallOptions): Promise<boolean>;
  /** In order. A list that expires between two pages restarts once, with `restarted`. */
  pages(resource: Resource, options?: ListOptions): AsyncIterable<Page>;
  /** As the body arrives, until `signal` aborts; the head within 30 s. Never retries. */
  stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

/** Limit of a stream's head. */
const HEAD_MS = 30_000;

export type OwnQuestion = Omit<AccessQuestion, 'user' | 'groups' | 'uid' | 'extra'>;

export function ownCalls(transport: Transport): OwnCalls {
  const review = (version: string, group: string, plural: string, kind: string, spec: object, options: CallOptions) =>
    transport.request({
      method: 'POST',
      path: `${groupPath({ group, version })}/${plural}`,
      body: { apiVersion: `${group}/${version}`, kind, spec },
      retry: 'idempotent',
      signal: options.signal,
    });
  return {
    async whoAmI(options = {}) {
      const answer = await review(
        'v1',
        'authentication.k8s.io',
        'selfsubjectreviews',
        'SelfSubjectReview',
        {},
        options,
      );
      const user = tokenUserOf({ authenticated: true, user: own(own(answer, 'status'), 'userInfo') }, undefined);
      if (user) return user;
      throw new TransportError('SelfSubjectReview: the answer contains no user', undefined, false);
    },
    async isAllowed(question, options = {}) {
      const spec = { resourceAttributes: question };
      const kind = 'SelfSubjectAccessReview';
      const answer = await review('v1', 'authorization.k8s.io', 'selfsubjectaccessreviews', kind, spec, options);
      return own(own(answer, 'status'), 'allowed') === true;
    },
    stream: (path, signal) => transport.stream({ path, signal, headTimeoutMs: HEAD_MS }),
    pages: (resource, options) => listPages(transport, resource, options),
  };
}
