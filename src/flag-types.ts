import { isIP, isIPv6 } from 'node:net';
import { parseGoDuration } from './kit/go-duration.ts';

/** A wrong command, flag, or value. The process prints the message and exits with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Converts the text of a flag to its value. */
export interface FlagType<T> {
  /** Stands for the value in `--help`. */
  readonly placeholder: string;
  /** `origin` as in `Flags.origin`. @throws UsageError naming the origin, what was found, and what is allowed. */
  parse(text: string, origin: string): T;
}

/** Any text but the empty one. */
export const text = (placeholder: string): FlagType<string> => ({
  placeholder,
  parse: (value, origin) => {
    if (value === '') throw new UsageError(`${origin} must not be empty`);
    return value;
  },
});

/** The given type, except that an empty text counts as not given. */
export const optional = <T>({ placeholder, parse }: FlagType<T>): FlagType<T | undefined> => ({
  placeholder,
  parse: (value, origin) => (value === '' ? undefined : parse(value, origin)),
});

/** Values that match `pattern` and that `from` can convert; `allowed` describes them in an error. */
const matching = <T>(
  placeholder: string,
  pattern: RegExp,
  allowed: string,
  from: (value: string) => T | undefined,
): FlagType<T> => ({
  placeholder,
  parse: (value, origin) => {
    const parsed = pattern.test(text(placeholder).parse(value, origin)) ? from(value) : undefined;
    if (parsed === undefined) throw new UsageError(`${origin} is "${value}"; it must be ${allowed}`);
    return parsed;
  },
});

/** A port; 0 selects a free one. */
export const port = matching('PORT', /^\d{1,5}$/, 'a port number from 0 to 65535', (value) =>
  Number(value) > 65535 ? undefined : Number(value),
);

/** An IP address that others can connect to, so not one that means every interface. */
export const isPeerAddress = (value: string): boolean => isIP(value) !== 0 && value !== '0.0.0.0' && value !== '::';

/** An address for peers. An admission policy allows no other text in the Lease of a replica. */
export const peerAddress = matching('ADDRESS', /^/, 'an IP address of this replica, such as 10.0.0.7', (value) =>
  isPeerAddress(value) ? value : undefined,
);

/** An absolute URL that has only one of the schemes, a host, port, and path. */
export const url = (schemes: 'https' | 'http or https') =>
  matching(
    'URL',
    /^[^?#@]+$/,
    `an ${schemes} URL without user, query, and fragment, such as https://drawbridge.example.org`,
    (value) => {
      const protocol = URL.canParse(value) ? new URL(value).protocol : '';
      return protocol === 'https:' || (protocol === 'http:' && schemes === 'http or https') ? value : undefined;
    },
  );

/** A limit from 0 to 999,999; 0 means no limit. */
export const count = matching('NUMBER', /^\d{1,6}$/, 'a number from 0 to 999999, where 0 is no limit', Number);

/** One of the given words. */
export const oneOf = <T extends string>(...allowed: readonly T[]) =>
  matching(allowed.join('|'), /^/, `one of ${allowed.join(', ')}`, (value) =>
    allowed.find((candidate) => candidate === value),
  );

/** `true` or `false`, in lower case. */
export const trueOrFalse: FlagType<boolean> = {
  placeholder: 'true|false',
  parse: (value, origin) => oneOf('true', 'false').parse(value, origin) === 'true',
};

/** A Go duration, such as `15s`, of at least `leastMs` milliseconds. The value is in milliseconds, rounded down. */
export const duration = (leastMs = 0): FlagType<number> => ({
  placeholder: 'DURATION',
  parse: (value, origin) => {
    const parsed = parseGoDuration(text('').parse(value, origin));
    if ('error' in parsed) throw new UsageError(`${origin}: ${parsed.error}`);
    const ms = Number(parsed.ns / 1_000_000n);
    if (ms >= leastMs) return ms;
    throw new UsageError(`${origin} is "${value}"; it must be at least ${leastMs / 1000} s`);
  },
});

/** DNS subdomains, such as `pods.example.org`, or IPv4 addresses, separated by commas, without spaces. */
export const names: FlagType<readonly string[]> = {
  placeholder: 'NAMES',
  parse: (value, origin) => {
    const found = value.split(',');
    const wrong = found.find((name) => name.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name));
    if (wrong === undefined) return Object.freeze(found);
    throw new UsageError(
      `${origin} contains "${wrong}"; it must be names separated by commas, without spaces; a name has 1 to 253 lowercase letters, digits, -, and ., and starts and ends with a letter or digit`,
    );
  },
};

/** Of IPv4 or IPv6, separated by commas, without spaces. */
export const cidrs: FlagType<readonly string[]> = {
  placeholder: 'CIDRS',
  parse: (value, origin) => {
    const found = value.split(',');
    const wrong = found.find((one) => !isCidr(one));
    if (wrong === undefined) return Object.freeze(found);
    throw new UsageError(
      `${origin} contains "${wrong}"; it must be CIDRs separated by commas, without spaces, such as 10.20.0.0/16,fd00:20::/32`,
    );
  },
};

function isCidr(text: string): boolean {
  const [, address = '', bits = ''] = /^([0-9a-f.:]+)\/(\d{1,3})$/i.exec(text) ?? [];
  return isIP(address) !== 0 && Number(bits) <= (isIPv6(address) ? 128 : 32);
}

const allFeatures = ['access', 'binding', 'inventory', 'gateway', 'notify'] as const;

/** Names of features, separated by commas. The value has each once, in the order of `allFeatures`. */
export const features: FlagType<readonly (typeof allFeatures)[number][]> = {
  placeholder: 'NAMES',
  parse: (value, origin) => {
    const found = text('').parse(value, origin).split(',');
    if (found.every((name) => allFeatures.some((known) => known === name.trim()))) {
      return Object.freeze(allFeatures.filter((known) => found.some((name) => known === name.trim())));
    }
    throw new UsageError(
      `${origin} is "${value}"; it must be ${allFeatures.join(', ')}, or several of them separated by commas`,
    );
  },
};

/** `HOST:PORT` or `:PORT`. An IPv6 host may be in brackets, which the value omits. `host` is empty if only a port is given. */
export const address = matching(
  'ADDRESS',
  /^.*:\d{1,5}$/,
  'HOST:PORT or :PORT, with a port number from 0 to 65535',
  (value) => {
    const colon = value.lastIndexOf(':');
    const number = Number(value.slice(colon + 1));
    return number > 65535 ? undefined : { host: value.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: number };
  },
);

/** A verbosity of klog: a whole number of at most 9 digits, which may be negative. */
export const verbosity: FlagType<number> = {
  placeholder: 'NUMBER',
  parse: (value, origin) => {
    if (/^-?\d{1,9}$/.test(value)) return Number(value);
    throw new UsageError(`${origin} is "${value}"; it must be a whole number of at most 9 digits`);
  },
};
