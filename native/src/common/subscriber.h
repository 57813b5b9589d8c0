// The subscribers of one process, usually one: they obey the control channel, and each counts exactly what it
// received.
//
// One loop for all of them: obey, take what has arrived (a batch of each in turn), do what is due, wait. Only
// subscribers with arrivals are visited, so a process with thousands costs no more than their messages.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/batch.h"
#include "common/connector.h"
#include "common/control_client.h"
#include "common/subscriber_connection.h"
#include "common/subscriber_step.h"
#include "common/time_series.h"
#include "common/transport.h"
#include "common/waiter.h"

namespace hydra {

class Subscriber {
  public:
    // Messages that arrive within `gather_ns` of a wake-up are taken together.
    Subscriber(ControlClient& control, std::int64_t gather_ns,
               const std::function<std::unique_ptr<SubscriberTransport>()>& open);
    ~Subscriber();

    // Obeys commands until it receives `quit`.
    void run();

  private:
    struct Client {
        Id id = 0;
        std::unique_ptr<SubscriberTransport> transport{};
        int watched_fd = -1;
        bool queued = false;  // in queue_
        bool more = false;    // a message may have arrived that was not taken yet
        LatencyRecorder latency{};
        bool cohort = false;                     // in the step's cohort
        std::uint32_t epoch = 0;                 // of the last configuration, even if it failed
        std::uint32_t configured = 0;            // number of the last `configure`
        std::uint32_t finished = 0;              // number of the last `finish`
        std::unique_ptr<SubscriberStep> step{};  // none before the first, and after one that failed
        std::unique_ptr<SubscriberReport> report{};
        bool reported = false;  // whether it was sent before
        // Of a step that measures connecting: the connection, what it is for, and the number of its last
        // attempt; while one is made on another thread, it is `trying`.
        std::unique_ptr<SubscriberConnection> connection{};
        std::shared_ptr<const Configure> command{};
        std::uint64_t attempt = 0;
        bool trying = false;
    };

    bool obey_all();
    void obey(const Configure& command);
    void obey(const Start& command);
    void obey(const Stop& command);
    void obey(const Finish& command);
    template <typename Other>
    void obey(const Other&) {}
    void configure(Client& client, const Configure& command, const std::shared_ptr<SharedTraffic>& traffic,
                   Ids& acknowledged);
    bool settle(Client& client, const Configure& command);

    template <typename Each>
    void for_step(const Ids& named, std::uint32_t epoch, Each each);
    Client& client(Id id);

    void connect_all(std::int64_t now_ns);
    void connect(Client& client, std::int64_t now_ns);
    void take_connections();
    void connected(Client& client, std::int64_t now_ns);
    void look_at_connection(Client& client, std::int64_t now_ns);
    [[nodiscard]] std::unique_ptr<SubscriberTransport> fresh_transport(const Client& client) const;

    void take_all(std::int64_t now_ns);
    void take(Client& client, std::int64_t now_ns);
    void follow_impairments(Client& client, std::int64_t now_ns);
    void reconnect(Client& client);
    void fail(Client& client, const TransportError& error);
    void do_what_is_due(std::int64_t now_ns);
    void tend_all(std::int64_t now_ns);
    void report_progress(Client& client, std::int64_t now_ns);
    void send_time_series(std::int64_t now_ns);
    void send_ready();
    void send_reports();
    void arrived(Client& client, bool ended);
    static bool between_steps(const Client& client);
    void queue(Client& client);
    void unwatch(Client& client);
    void watch_anew(Client& client);

    ControlClient& control_;
    std::int64_t gather_ns_;
    std::function<std::unique_ptr<SubscriberTransport>()> open_;
    Waiter waiter_;
    Batch batch_;
    std::vector<Client> clients_;  // by id
    std::vector<Client*> queue_;   // clients that may have arrivals and may read them
    std::vector<Client*> turn_;
    Ids ready_;                                          // clients whose `ready` has to be sent
    std::pair<std::uint32_t, std::uint32_t> ready_for_;  // their epoch and the number of their `configure`
    std::vector<Client*> reporting_;                     // clients whose report has to be sent
    // The time series of the clients: outside the step's cohort, and in it.
    std::array<ReceivedTimeSeries, 2> time_series_{};
    std::uint32_t time_series_epoch_ = 0;
    std::int64_t time_series_every_ns_ = 0;
    std::int64_t time_series_at_ns_ = kNeverNs;  // when it is sent next
    std::int64_t due_ns_ = 0;                    // the earliest next_ns of all steps, or earlier
    std::unique_ptr<Connector> connector_;       // in a process whose clients have connected on other threads
    std::int64_t connect_at_ns_ = kNeverNs;      // the earliest time that a client has to connect, or earlier
    std::int64_t tend_at_ns_ = kNeverNs;         // the earliest time that a transport asked for, or earlier
};

}  // namespace hydra
