import { accountName, callAudience, managerAccount } from '../../api/inventory/names.ts';
import type { ObjectName } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { unlessAborted } from '../../kit/promises.ts';
import { parseJson } from '../../kit/safe-json.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound, TransportError } from '../../kube/errors.ts';
import type { Entry } from '../entry.ts';
import type { IssuedToken, TokenIssuer, TokenReader } from '../ports.ts';
import type { EntryAccounts, Grantee } from './entry-accounts.ts';

interface RunTokensDeps {
  readonly client: Client;
  readonly accounts: Pick<EntryAccounts, 'ensure' | 'forget'>;
  readonly homeNamespace: string;
  readonly clock: Clock;
}

/** Of all tokens: the minimum of the API server. */
const lifetimeSeconds = 600;
/** A shared call token is replaced once at most this much of its lifetime remains. */
const callReserveMs = 180_000;

export class RunTokens implements TokenIssuer {
  readonly #deps: RunTokensDeps;
  /** They authenticate the server to a component. By component. */
  readonly #callTokens = new Map<string, IssuedToken>();
  readonly #pending = new Map<string, Promise<IssuedToken>>();

  constructor(deps: RunTokensDeps) {
    this.#deps = deps;
  }

  /** For any account of the entry, with or without a run. Creates the account and its Roles. */
  async forRun(entry: Entry, grantee: Grantee, signal: AbortSignal): Promise<IssuedToken> {
    const { accounts } = this.#deps;
    const { namespace, uid } = entry.ref;
    const account = { namespace, name: accountName(uid, grantee.name) };
    await accounts.ensure(entry, grantee, signal);
    try {
      return await this.#issue(account, undefined, signal);
    } catch (error) {
      if (!isNotFound(error) || !accounts.forget(uid)) throw error;
      await accounts.ensure(entry, grantee, signal);
      return this.#issue(account, undefined, signal);
    }
  }

  async forCall(component: string, signal: AbortSignal): Promise<string> {
    const shared = this.#callTokens.get(component);
    if (shared && shared.expiresAtMs - this.#deps.clock.now() > callReserveMs) return shared.token;
    signal.throwIfAborted();
    const request = this.#pending.get(component) ?? this.#renew(component);
    return (await unlessAborted(request, signal)).token;
  }

  /** Takes no signal, because several callers share the request. */
  #renew(component: string): Promise<IssuedToken> {
    const account = { namespace: this.#deps.homeNamespace, name: managerAccount };
    const issuing = this.#issue(account, [callAudience(component)])
      .then((token) => {
        this.#callTokens.set(component, token);
        return token;
      })
      .finally(() => this.#pending.delete(component));
    this.#pending.set(component, issuing);
    return issuing;
  }

  async #issue(account: ObjectName, audiences?: string[], signal?: AbortSignal): Promise<IssuedToken> {
    const request = { expirationSeconds: lifetimeSeconds, ...(audiences ? { audiences } : {}) };
    const { token, expiresAt } = await this.#deps.client.createToken(account, request, signal ? { signal } : {});
    const expiresAtMs = parseTime(expiresAt);
    if (expiresAtMs === undefined) {
      throw new TransportError(
        'the answer to a TokenRequest has no valid expirationTimestamp; check which server answers for the API server',
        undefined,
        false,
      );
    }
    return { token, expiresAtMs, id: credentialIdOf(token) };
  }
}

/**
 * The `authentication.kubernetes.io/credential-id` of a new token, from its claim `jti`; the
 * signature is not checked. Throws CodedError `NoCredentialId` if the claim is absent or has
 * another form.
 */
export function credentialIdOf(token: string): string {
  const id = own(payloadOf(token), 'jti');
  if (typeof id === 'string' && /^[\x21-\x7e]{1,100}$/.test(id)) return `JTI=${id}`;
  throw new CodedError(
    'NoCredentialId',
    'the token has no ID (jti), which write authorization requires; use Kubernetes 1.34 or later',
  );
}

function payloadOf(token: string): unknown {
  const [, payload = ''] = token.split('.');
  try {
    return parseJson(Buffer.from(payload, 'base64url'));
  } catch {
    return undefined;
  }
}

/** Tokens of the API server are shorter. */
const maxTokenLength = 16_384;

/** Authenticates by TokenReview, except tokens that are overlong or not printable ASCII. */
export const tokenReader = (client: Client): TokenReader => ({
  async read(token, signal) {
    if (token.length > maxTokenLength || !/^[\x21-\x7e]+$/.test(token)) return undefined;
    const user = await client.reviewToken(token, { signal });
    const [credentialId, ...others] = user?.extra['authentication.kubernetes.io/credential-id'] ?? [];
    return user && credentialId !== undefined && others.length === 0
      ? { account: user.username, credentialId }
      : undefined;
  },
});
