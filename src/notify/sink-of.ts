import { X509Certificate } from 'node:crypto';
import { type ProviderSpec, providerSecretType } from '../api/notify/notification-provider.ts';
import { quote } from '../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { own } from '../kit/json-value.ts';
import { isMailAddress, maxRecipients, parseRecipients } from './addresses.ts';
import { type Sink, UnusableSink } from './sink.ts';

const invalidSpec = (message: string): never => {
  throw new UnusableSink('SpecInvalid', message);
};
const invalidSecret = (message: string): never => {
  throw new UnusableSink('SecretInvalid', message);
};

type Values = Partial<Record<(typeof secretKeys)[number], string>>;

const secretKeys = ['address', 'token', 'username', 'password', 'signingKey', 'previousSigningKey'] as const;

function readSecret({ secretRef }: ProviderSpec, secret: unknown): Values {
  if (secretRef === undefined) return {};
  const name = `the Secret ${secretRef.name}`;
  if (!secret) return invalidSecret(`${name} does not exist; create it with the type ${providerSecretType}`);
  if (own(secret, 'type') !== providerSecretType)
    return invalidSecret(`${name} has another type; allowed is ${providerSecretType}; create another one`);
  const values: Values = {};
  for (const key of secretKeys) {
    const encoded = own(own(secret, 'data'), key);
    if (typeof encoded !== 'string') continue;
    // Files often end with a line break.
    const value = Buffer.from(encoded, 'base64').toString('utf8').trim();
    if (/^$|[\p{Cc}\uFFFD]/u.test(value) || value.length > 4096) {
      return invalidSecret(`the key ${key} of ${name} is empty or not one line of text; correct it`);
    }
    values[key] = value;
  }
  return values;
}

/** `secret`: what `spec.secretRef` names, with values in base64. Throws UnusableSink. */
export function sinkOf(spec: ProviderSpec, secret: unknown): Sink {
  const values = readSecret(spec, secret);
  const { type, channel, sender, caBundle } = spec;
  const address = readAddress(spec, values);
  const sink = { type, signingKeys: [], timeoutMs: readTimeout(spec), ...readTrust(caBundle) };
  const required = (): URL => address ?? invalidSpec(`a provider of type ${type} needs an address; set spec.address`);
  switch (type) {
    case 'Webhook':
      return { ...sink, address: required(), signingKeys: readSigningKeys(values) };
    case 'Teams':
      return { ...sink, address: required() };
    case 'Slack': {
      const { token } = values;
      if (token === undefined) return { ...sink, address: required() };
      if (!/^[\x21-\x7e]+$/.test(token)) return invalidSecret('the key token has spaces or is not ASCII; correct it');
      if (channel === undefined) return invalidSpec('with a token, Slack needs a channel; set spec.channel');
      return { ...sink, token, channel, ...(address ? { address } : {}) };
    }
    case 'Email': {
      if (sender === undefined || !isMailAddress(sender))
        return invalidSpec('spec.sender is not a mail address; allowed is one such as access@example.com');
      if (channel !== undefined && !parseRecipients(channel))
        return invalidSpec(
          `spec.channel is not a list of mail addresses; allowed are ${maxRecipients} at most, with commas between them`,
        );
      const login = readLogin(values);
      return { ...sink, address: required(), sender, ...(channel === undefined ? {} : { channel }), ...login };
    }
  }
}

/**
 * Credentials go only to an address of the same Secret, or to Slack itself. Otherwise, a user who may
 * edit providers, but not read Secrets, could let the server send a credential to an address of theirs.
 */
function readAddress({ type, address }: ProviderSpec, values: Values): URL | undefined {
  const text = values.address ?? address;
  if (text === undefined) return undefined;
  const { token, username, password, signingKey } = values;
  if (values.address === undefined && (token ?? username ?? password ?? signingKey) !== undefined) {
    return invalidSpec(
      'credentials of a Secret are sent only to the address of the same Secret; move spec.address to the key address of the Secret',
    );
  }
  const parsed = parseAddress(type, text);
  if (typeof parsed !== 'string') return parsed;
  return values.address === undefined
    ? invalidSpec(`spec.address ${parsed}`)
    : invalidSecret(`the key address of the Secret ${parsed}`);
}

/** Or what is wrong with it, without quoting it. */
function parseAddress(type: ProviderSpec['type'], text: string): URL | string {
  const isMail = type === 'Email';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable =
    url &&
    (isMail ? ['smtp:', 'smtps:'] : ['https:']).includes(url.protocol) &&
    !(url.username || url.password || url.hash) &&
    !(isMail && (url.search || !['', '/'].includes(url.pathname))) &&
    // Only the hosts of https URLs are normalized by the parser.
    /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/i.test(url.hostname);
  if (isUsable) return url;
  const allowed = isMail ? 'smtp://HOST:PORT or smtps://HOST:PORT' : 'an https URL';
  return `is not one that can be used; allowed is ${allowed}, without a user, whom the Secret names, and without a fragment`;
}

function readSigningKeys({ signingKey, previousSigningKey }: Values): readonly Buffer[] {
  if (signingKey === undefined)
    return invalidSecret(
      'a Webhook needs the key signingKey in a Secret, by which its receiver checks messages; set it',
    );
  const read = (key: string, text: string): Buffer =>
    parseSigningKey(text) ?? invalidSecret(`the key ${key} is not whsec_ and 24 to 64 bytes in base64; correct it`);
  const previous = previousSigningKey === undefined ? [] : [read('previousSigningKey', previousSigningKey)];
  return [read('signingKey', signingKey), ...previous];
}

/** Of `whsec_` and base64, 24 to 64 bytes; undefined if it is anything else. */
function parseSigningKey(text: string): Buffer | undefined {
  const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(encoded, 'base64');
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === encoded ? key : undefined;
}

function readLogin({ username, password }: Values): Pick<Sink, 'login'> {
  if (username === undefined && password === undefined) return {};
  if (username === undefined || password === undefined)
    return invalidSecret('the Secret has only one of the keys username and password; set both or none');
  return { login: { username, password } };
}

function readTimeout({ timeout = '10s' }: ProviderSpec): number {
  const parsed = parseGoDuration(timeout);
  const timeoutMs = 'ns' in parsed ? toMilliseconds(parsed.ns) : 0;
  if (timeoutMs >= 1000 && timeoutMs <= 30_000) return timeoutMs;
  return invalidSpec(`spec.timeout is ${quote(timeout)}; allowed are Go durations from 1s to 30s`);
}

function readTrust(caBundle: string | undefined): Pick<Sink, 'caBundle'> {
  if (caBundle === undefined) return {};
  try {
    new X509Certificate(caBundle);
  } catch {
    return invalidSpec('spec.caBundle is not a certificate; allowed are certificates in PEM');
  }
  return { caBundle };
}
