/* A streaming server with known times, for measuring load clients: one thread, epoll, HTTP/1.1 keep-alive.
 *
 * mock_stream PORT GAP_US PER_EVENT TTFT_US SLOTS STEPS
 *
 * Every request gets its first event TTFT_US after a slot is free for it, and then an event of PER_EVENT tokens
 * every PER_EVENT * GAP_US. With STEPS 1 all events wait for the next multiple of GAP_US, as an engine answers all
 * requests of a step at once; with 0 each request keeps its own phase, which wakes a client most often. The answer's length is the request's "max_tokens" or
 * "max_new_tokens". POST /generate answers in SGLang's native form, any other POST as OpenAI completions; with
 * "continuous_usage_stats" or natively, every event carries the running count. A GET answers an empty list of
 * models, and GET /times the server's own view since the last such call: for every request the time from reading it
 * to writing its first event in microseconds, one a line, and last the tokens written.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 8192, BUFFER = 1 << 18, MAX_TIMES = 1 << 20 };

struct connection {
    int fd, used, asked, sent, native, counted, waiting, heap_at;
    int64_t read_us, due_us;
    char *buffer;
};

static struct connection connections[MAX_CONNECTIONS];
static struct connection *heap[MAX_CONNECTIONS], *queue[MAX_CONNECTIONS];
static int heap_size, queue_head, queue_size, busy, slots, steps, times_size;
static int64_t gap_us, ttft_us, tokens_written, times[MAX_TIMES];
static int per_event;

static int64_t now_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

/* A heap of the connections whose next event is due, soonest first. */
static void place(int at, struct connection *c) { heap[at] = c; c->heap_at = at; }

static void sift(int at) {
    struct connection *c = heap[at];
    while (at > 0 && heap[(at - 1) / 2]->due_us > c->due_us) { place(at, heap[(at - 1) / 2]); at = (at - 1) / 2; }
    for (;;) {
        int child = 2 * at + 1;
        if (child >= heap_size) break;
        if (child + 1 < heap_size && heap[child + 1]->due_us < heap[child]->due_us) child++;
        if (heap[child]->due_us >= c->due_us) break;
        place(at, heap[child]);
        at = child;
    }
    place(at, c);
}

static void heap_push(struct connection *c) { place(heap_size++, c); sift(c->heap_at); }

static void heap_remove(struct connection *c) {
    int at = c->heap_at;
    struct connection *last = heap[--heap_size];
    c->heap_at = -1;
    if (last != c) { place(at, last); sift(at); }
}

static void start(struct connection *c, int64_t now) {
    busy++;
    c->due_us = steps ? (now + ttft_us + gap_us - 1) / gap_us * gap_us : now + ttft_us;
    heap_push(c);
}

static void admit(int64_t now) {
    while (queue_size > 0 && busy < slots) {
        struct connection *c = queue[queue_head];
        queue_head = (queue_head + 1) % MAX_CONNECTIONS;
        queue_size--;
        if (c == NULL) continue;
        c->waiting = 0;
        start(c, now);
    }
}

static void drop(struct connection *c, int64_t now) {
    if (c->heap_at >= 0) { heap_remove(c); busy--; }
    if (c->waiting)
        for (int i = 0; i < queue_size; i++)
            if (queue[(queue_head + i) % MAX_CONNECTIONS] == c) queue[(queue_head + i) % MAX_CONNECTIONS] = NULL;
    close(c->fd);
    free(c->buffer);
    memset(c, 0, sizeof *c);
    c->heap_at = -1;
    admit(now);
}

static int number_after(const char *body, const char *key, int otherwise) {
    const char *found = strstr(body, key);
    return found ? atoi(found + strlen(key) + strspn(found + strlen(key), "\": ")) : otherwise;
}

static int send_all(struct connection *c, const char *text, int length) {
    return send(c->fd, text, length, MSG_NOSIGNAL) == length;  /* a client that reads too late is no client here */
}

static int send_event(struct connection *c) {
    char event[2048], out[2304];
    int more = c->asked - c->sent < per_event ? c->asked - c->sent : per_event, length;
    c->sent += more;
    tokens_written += more;
    int last = c->sent == c->asked;
    char words[256] = "";
    for (int i = 0; i < more && i < 32; i++) strcat(words, " token");
    if (c->native)
        length = snprintf(event, sizeof event,
            "data: {\"text\":\"%s\",\"meta_info\":{\"id\":\"0123456789abcdef0123456789abcdef\",\"finish_reason\":%s,"
            "\"prompt_tokens\":128,\"completion_tokens\":%d,\"cached_tokens\":0}}\n\n",
            words, last ? "{\"type\":\"length\",\"length\":0}" : "null", c->sent);
    else {
        char usage[128] = "";
        if (c->counted)
            snprintf(usage, sizeof usage,
                ",\"usage\":{\"prompt_tokens\":128,\"total_tokens\":%d,\"completion_tokens\":%d}", 128 + c->sent, c->sent);
        length = snprintf(event, sizeof event,
            "data: {\"id\":\"cmpl-0123456789abcdef\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"mock\","
            "\"choices\":[{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s,\"stop_reason\":null}]%s}\n\n",
            words, last ? "\"length\"" : "null", usage);
    }
    int out_length = sprintf(out, "%x\r\n%s\r\n", length, event);
    if (last) {
        if (!c->native) {
            length = sprintf(event,
                "data: {\"id\":\"cmpl-0123456789abcdef\",\"object\":\"text_completion\",\"created\":1700000000,"
                "\"model\":\"mock\",\"choices\":[],\"usage\":{\"prompt_tokens\":128,\"total_tokens\":%d,"
                "\"completion_tokens\":%d}}\n\n", 128 + c->sent, c->sent);
            out_length += sprintf(out + out_length, "%x\r\n%s\r\n", length, event);
        }
        out_length += sprintf(out + out_length, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }
    return send_all(c, out, out_length);
}

static int send_times(struct connection *c) {
    char head[128];
    char *body = malloc(24 * (size_t)times_size + 64);
    int length = 0;
    for (int i = 0; i < times_size; i++) length += sprintf(body + length, "%lld\n", (long long)times[i]);
    length += sprintf(body + length, "%lld\n", (long long)tokens_written);
    times_size = 0;
    tokens_written = 0;
    int head_length = sprintf(head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", length);
    int fine = send_all(c, head, head_length) && send_all(c, body, length);
    free(body);
    return fine;
}

/* Whole requests in the buffer are taken out of it. */
static int answer(struct connection *c, int64_t now) {
    static const char models[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 68\r\n\r\n"
                                 "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"root\":\"x\"}]}";
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
    c->buffer[c->used] = 0;
    char *body = strstr(c->buffer, "\r\n\r\n");
    if (body == NULL) return c->used < BUFFER - 1;
    body += 4;
    char *named = strcasestr(c->buffer, "\r\ncontent-length:");
    int length = named && named < body ? atoi(named + 17) : 0;
    if (body - c->buffer + length > c->used) return body - c->buffer + length < BUFFER - 1;
    int fine;
    if (strncmp(c->buffer, "POST", 4) != 0)
        fine = strncmp(c->buffer, "GET /times", 10) == 0 ? send_times(c) : send_all(c, models, sizeof models - 1);
    else {
        c->native = strncmp(c->buffer, "POST /generate", 14) == 0;
        c->counted = strstr(body, "continuous_usage_stats") != NULL;
        c->asked = number_after(body, "\"max_tokens", number_after(body, "\"max_new_tokens", 16));
        c->sent = 0;
        c->read_us = now;
        fine = send_all(c, head, sizeof head - 1);
        if (busy < slots) start(c, now);
        else {
            c->waiting = 1;
            queue[(queue_head + queue_size++) % MAX_CONNECTIONS] = c;
        }
    }
    c->used = 0;  /* clients here send one request at a time */
    return fine;
}

static void tell_due(int64_t now) {
    while (heap_size > 0 && heap[0]->due_us <= now) {
        struct connection *c = heap[0];
        int first = c->sent == 0;
        if (!send_event(c)) { drop(c, now); continue; }
        if (first && times_size < MAX_TIMES) times[times_size++] = now_us(CLOCK_MONOTONIC) - c->read_us;
        if (c->sent == c->asked) {
            heap_remove(c);
            busy--;
            admit(now);
        } else {
            c->due_us += gap_us * per_event;
            sift(c->heap_at);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 7) return fprintf(stderr, "usage: %s PORT GAP_US PER_EVENT TTFT_US SLOTS STEPS\n", argv[0]), 2;
    gap_us = atoll(argv[2]);
    per_event = atoi(argv[3]);
    ttft_us = atoll(argv[4]);
    slots = atoi(argv[5]);
    steps = atoi(argv[6]);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) return perror("bind"), 1;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = listener}, ready[512];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted);
    wanted.data.fd = timer;
    epoll_ctl(poll, EPOLL_CTL_ADD, timer, &wanted);
    for (int i = 0; i < MAX_CONNECTIONS; i++) connections[i].heap_at = -1;
    for (;;) {
        struct itimerspec due = {0};
        if (heap_size > 0) {
            int64_t at = heap[0]->due_us > 0 ? heap[0]->due_us : 1;
            due.it_value.tv_sec = at / 1000000;
            due.it_value.tv_nsec = at % 1000000 * 1000;
        }
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &due, NULL);
        int count = epoll_wait(poll, ready, 512, -1);
        int64_t now = now_us(CLOCK_MONOTONIC);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == timer) {
                uint64_t expired;
                if (read(timer, &expired, sizeof expired) < 0 && errno != EAGAIN) return perror("timer"), 1;
            } else if (fd == listener) {
                int made;
                while ((made = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    if (made >= MAX_CONNECTIONS) { close(made); continue; }
                    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    connections[made].fd = made;
                    connections[made].buffer = malloc(BUFFER);
                    wanted.data.fd = made;
                    epoll_ctl(poll, EPOLL_CTL_ADD, made, &wanted);
                }
            } else {
                struct connection *c = &connections[fd];
                if (c->buffer == NULL) continue;
                int got = recv(fd, c->buffer + c->used, BUFFER - 1 - c->used, 0);
                if (got > 0) c->used += got;
                if ((got <= 0 && errno != EAGAIN) || got == 0 || !answer(c, now)) drop(c, now);
            }
        }
        tell_due(now_us(CLOCK_MONOTONIC));
    }
}
