import type { Resource } from '../api/object.ts';
import { own } from '../kit/json-value.ts';
import { groupPath } from './api-paths.ts';
import type { AccessQuestion, CallOptions, ListOptions, TokenUser } from './client.ts';
import { TransportError } from './errors.ts';
import { listPages, type Page } from './list-pages.ts';
import { tokenUserOf } from './token-user.ts';
import type { Transport } from './transport.ts';

/**
 * Calls about the user of the credentials, for programs that act for a person: the user name, permissions, and lists page by page. They
 * reject as the calls of `Client` do.
 */
export interface OwnCalls {
  /** The user as whom the API server authenticates the caller (SelfSubjectReview). */
  whoAmI(options?: CallOptions): Promise<TokenUser>;
  /** Whether the caller is allowed the action (SelfSubjectAccessReview). */
  isAllowed(question: OwnQuestion, options?: CallOptions): Promise<boolean>;
  /** The pages of a list, in order. If the list expires between two pages, it restarts once, with `restarted`. */
  pages(resource: Resource, options?: ListOptions): AsyncIterable<Page>;
  /** The body of a GET, while it arrives, until `signal` aborts. The head must arrive within 30 s. Never retries. */
  stream(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
}

/** How long the server may take to send the head of a stream, milliseconds. */
const HEAD_MS = 30_000;

/** The attributes of a SelfSubjectAccessReview. */
export type OwnQuestion = Omit<AccessQuestion, 'user' | 'groups' | 'uid' | 'extra'>;

/** The OwnCalls of the user with whose credentials `transport` calls. */
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
