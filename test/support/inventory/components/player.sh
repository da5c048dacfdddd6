# A component in plain shell that needs only curl. It handles one call: AUTHORIZATION contains that header, and standard input the
# body. It prints the status of the answer on one line and its body on the next. config.play of the entry says what it does.
set -eu

answer() {
  printf '%s\n%s\n' "$1" "$2"
  exit 0
}
# Prints the string under a name in JSON without white space. Works for names that occur once.
text() { printf '%s' "$2" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
# The API server answers curl with white space.
api() {
  answered=$(curl --silent --show-error --fail --max-time 10 ${API_CA_FILE:+--cacert "$API_CA_FILE"} "$@") || return 1
  printf '%s' "$answered" | tr -d '\n' | sed 's/\([]"}0-9a-z],\) */\1/g; s/": */":/g; s/\([{[]\) */\1/g; s/ *\([]}]\)/\1/g'
}

token=${AUTHORIZATION#Bearer }
[ "Bearer $token" = "$AUTHORIZATION" ] || answer 401 '{"code":"Unauthorized"}'
case $token in *[!A-Za-z0-9._~+/=-]* | '') answer 401 '{"code":"Unauthorized"}' ;; esac
review=$(api -H "Authorization: Bearer $REVIEW_TOKEN" -H 'Content-Type: application/json' \
  -d '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"'"$token"'","audiences":["drawbridge/'"$COMPONENT"'"]}}' \
  "$API_URL/apis/authentication.k8s.io/v1/tokenreviews") || answer 503 '{"code":"Unavailable"}'
# The answer contains the request; only the part from the status on counts.
review=$(printf '%s' "$review" | sed 's/.*"status"://')
case $review in *'"authenticated":true'*) ;; *) answer 401 '{"code":"Unauthorized"}' ;; esac
case $review in *"\"username\":\"$SERVER_ACCOUNT\""*) ;; *) answer 401 '{"code":"Unauthorized"}' ;; esac
case $review in *"drawbridge/$COMPONENT"*) ;; *) answer 401 '{"code":"Unauthorized"}' ;; esac

request=$(head -c 131073)
[ "${#request}" -le 131072 ] || answer 413 '{"code":"BodyTooLarge"}'
url=$(text url "$request")
callback=$(text callback "$request")
token=$(text token "$request")
run=$(printf '%s' "$request" | sed -n 's/.*"run":{"id":"\([^"]*\)".*/\1/p')
[ -n "$run" ] || answer 400 '{"code":"InvalidRequest"}'
case $url in "$API_URL"/apis/inventory.drawbridge.dev/v1alpha1/namespaces/*) ;; *) answer 400 '{"code":"ForeignAddress"}' ;; esac
[ "$callback" = "$CALLBACK_URL/v1/runs/$run" ] || answer 400 '{"code":"ForeignAddress"}'
# JSON writes the line breaks of PEM as \n, which %b reads.
ca=$(printf '%b' "$(text ca "$request")")
[ "$ca" = "$([ -z "${API_CA_FILE:-}" ] || cat "$API_CA_FILE")" ] || answer 400 '{"code":"ForeignAddress"}'
[ "$(text component "$request")" = "$COMPONENT" ] || answer 400 '{"code":"OtherComponent"}'

end() { answer 200 "{\"run\":\"$run\",$1}"; }
# Repeats a report until it is accepted. This is no retry of the run. The answer to a heartbeat may contain a new token.
report() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    if answered=$(api -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d "{\"run\":\"$run\",$1}" "$callback"); then
      renewed=$(text token "$answered")
      token=${renewed:-$token}
      return
    fi
    sleep 0.2
  done
}

[ "$(text operation "$request")" = delete ] && end '"outcome":"Deleted"'
entry=$(api -H "Authorization: Bearer $token" "$url" 2>&1) || end '"outcome":"Retry","message":"the entry cannot be read"'
play=$(text play "$entry")
seen=$(text value "$entry")
outputs="{\"$COMPONENT\":{\"seen\":\"$seen\"}}"
case $play in
  notReady) end '"outcome":"NotReady","missing":[{"path":"/spec/cluster/region","want":"present"}]' ;;
  progressing) end '"outcome":"Progressing","requeueAfterSeconds":7' ;;
  retry) end '"outcome":"Retry","message":"try again"' ;;
  failed) end '"outcome":"Failed","message":"never"' ;;
  patch)
    api -X PATCH -H "Authorization: Bearer $token" -H 'Content-Type: application/merge-patch+json' \
      -d "{\"status\":{\"outputs\":$outputs}}" "$url/status" >/dev/null 2>&1 ||
      end '"outcome":"Retry","message":"the entry cannot be written"'
    end '"outcome":"Done"'
    ;;
  goOn)
    (
      sleep 0.1
      report '"heartbeat":{"leaseSeconds":5}'
      report "\"outcome\":\"Done\",\"outputs\":$outputs"
    ) >/dev/null 2>&1 </dev/null &
    answer 202 "{\"run\":\"$run\",\"leaseSeconds\":5}"
    ;;
esac
end "\"outcome\":\"Done\",\"outputs\":$outputs"
