import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type ProviderSpec, providerSecretType } from '../../../../src/api/notify/notification-provider.ts';
import type { UnusableSink } from '../../../../src/notify/sink.ts';
import { sinkOf } from '../../../../src/notify/sink-of.ts';
import { caBundle } from '../media/stage.ts';

const key = (bytes = 32): string => `whsec_${randomBytes(bytes).toString('base64')}`;
const secretOf = (values: Readonly<Record<string, string>>, type: string = providerSecretType) => ({
  type,
  data: Object.fromEntries(Object.entries(values).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
});
const secretRef = { name: 'sink' };
const url = 'https://sink.example.com/hook';
const webhook: ProviderSpec = { type: 'Webhook', secretRef };
const address = url;
const slack: ProviderSpec = { type: 'Slack', channel: '#access', secretRef };
const email: ProviderSpec = {
  type: 'Email',
  address: 'smtp://mail.example.com:587',
  sender: 'access@example.com',
  channel: 'a@example.com, b@example.com',
};
const login = { username: 'mailer', password: 'pass-word' };

describe('a sink of a provider', () => {
  it('has the address and the keys of the Secret, the newest first', () => {
    const [signingKey, previousSigningKey] = [key(24), key(64)];
    const sink = sinkOf(webhook, secretOf({ address, signingKey: `${signingKey}\n`, previousSigningKey }));
    assert.deepEqual(sink, {
      type: 'Webhook',
      address: new URL(url),
      signingKeys: [signingKey, previousSigningKey].map((text) => Buffer.from(text.slice(6), 'base64')),
      timeoutMs: 10_000,
    });
  });

  it('prefers the address of the Secret', () => {
    const sink = sinkOf({ ...webhook, address }, secretOf({ signingKey: key(), address: 'https://other.example.com' }));
    assert.equal(sink.address?.href, 'https://other.example.com/');
  });

  it('has a token for Slack itself, or for an address of the same Secret', () => {
    const sink = sinkOf(slack, secretOf({ token: 'xoxb-1' }));
    assert.ok(sink.token === 'xoxb-1' && sink.address === undefined && sink.channel === '#access');
    const elsewhere = sinkOf(slack, secretOf({ token: 'xoxb-1', address: 'https://slack-gov.com/api' }));
    assert.equal(elsewhere.address?.host, 'slack-gov.com');
  });

  it('has a login for an address of the same Secret', () => {
    const sink = sinkOf({ ...email, secretRef }, secretOf({ ...login, address: 'smtps://mail.example.com' }));
    assert.deepEqual(sink.login, login);
  });

  it('has no address of its own for mail to requesters alone', () => {
    const { channel: _, ...rest } = email;
    assert.equal(sinkOf(rest, undefined).channel, undefined);
  });

  it('trusts the authority of the spec, and waits as the spec says', () => {
    const sink = sinkOf({ type: 'Teams', address: url, caBundle, timeout: '1s' }, undefined);
    assert.deepEqual(sink, { type: 'Teams', address: new URL(url), signingKeys: [], timeoutMs: 1000, caBundle });
  });

  const invalidSecrets: Record<string, [spec: ProviderSpec, secret: unknown]> = {
    'has another type': [webhook, secretOf({ address, signingKey: key() }, 'Opaque')],
    'does not exist': [webhook, undefined],
    'has no signing key': [webhook, secretOf({ address: url })],
    'has a short signing key': [webhook, secretOf({ address, signingKey: key(23) })],
    'has a long signing key': [webhook, secretOf({ address, signingKey: key(65) })],
    'has a signing key of another form': [
      webhook,
      secretOf({ address, signingKey: randomBytes(32).toString('base64') }),
    ],
    'has an invalid previous key': [webhook, secretOf({ address, signingKey: key(), previousSigningKey: 'whsec_!' })],
    'has a plain address': [webhook, secretOf({ signingKey: key(), address: 'http://secret-host.example.com' })],
    'has an address with a user': [webhook, secretOf({ signingKey: key(), address: 'https://u:secret@example.com' })],
    'has a token with a line break': [slack, secretOf({ token: 'xoxb\r\nx-evil: 1' })],
    'has a token with a space': [slack, secretOf({ token: 'xoxb secret' })],
    'has an empty token': [slack, secretOf({ token: '\n' })],
    'has a user name alone': [{ ...email, secretRef }, secretOf({ username: 'm', address: 'smtps://example.com' })],
  };
  for (const [what, [spec, secret]] of Object.entries(invalidSecrets)) {
    it(`is refused if the Secret ${what}`, () => {
      assert.throws(
        () => sinkOf(spec, secret),
        ({ code, message }: UnusableSink) =>
          code === 'SecretInvalid' && !/secret-host|u:secret|evil|xoxb/.test(message),
      );
    });
  }

  const teams = (rest: Partial<ProviderSpec>): ProviderSpec => ({ type: 'Teams', address: url, ...rest });
  const invalidSpecs: Record<string, [spec: ProviderSpec, secret?: unknown]> = {
    'no address': [{ type: 'Teams' }],
    'a signing key for an address of the spec': [{ ...webhook, address }, secretOf({ signingKey: key() })],
    'a plain address': [teams({ address: 'http://example.com' })],
    'an address of mail': [teams({ address: 'smtp://example.com' })],
    'an address with a user': [teams({ address: 'https://user@example.com' })],
    'an address with a fragment': [teams({ address: 'https://example.com/#x' })],
    'no URL as address': [teams({ address: 'example.com' })],
    'a timeout of less than a second': [teams({ timeout: '999ms' })],
    'a timeout of more than 30 seconds': [teams({ timeout: '31s' })],
    'no duration as timeout': [teams({ timeout: 'soon' })],
    'no certificate as caBundle': [teams({ caBundle: 'x' })],
    'a token for an address of the spec': [{ ...slack, address: url }, secretOf({ token: 'xoxb-1' })],
    'a login for an address of the spec': [{ ...email, secretRef }, secretOf(login)],
    'a token without a channel': [{ type: 'Slack', secretRef }, secretOf({ token: 'xoxb-1' })],
    'mail over HTTPS': [{ ...email, address: url }],
    'mail with a path': [{ ...email, address: 'smtp://example.com/x' }],
    'mail to a host with spaces': [{ ...email, address: 'smtp://exa%20mple' }],
    'no sender': [{ type: 'Email', address: 'smtps://example.com', channel: 'a@example.com' }],
    'a sender with a name': [{ ...email, sender: 'Access <access@example.com>' }],
    'a sender with a line break': [{ ...email, sender: 'a@example.com\r\nBcc: b@example.com' }],
    'recipients with a line break': [{ ...email, channel: 'a@example.com\nb@example.com' }],
    'a recipient in quotes': [{ ...email, channel: '"a,b"@example.com' }],
    'an empty recipient': [{ ...email, channel: 'a@example.com,' }],
    'a recipient without a domain': [{ ...email, channel: 'root' }],
    '21 recipients': [{ ...email, channel: Array.from({ length: 21 }, (_, i) => `a${i}@example.com`).join(',') }],
  };
  for (const [what, [spec, secret]] of Object.entries(invalidSpecs)) {
    it(`is refused if the spec has ${what}`, () => {
      assert.throws(() => sinkOf(spec, secret), { code: 'SpecInvalid' });
    });
  }
});
