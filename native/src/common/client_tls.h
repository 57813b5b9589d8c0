// The object `tls` of a system object: how a client uses TLS. (Python: hydra/client/tls.py.)
#pragma once

#include <string>

namespace hydra {

// PEM texts: the CAs that the client trusts (empty: those of its machine), its certificate, and its key.
struct ClientTls {
    std::string ca;
    std::string certificate;
    std::string key;
    bool operator==(const ClientTls&) const = default;

    static void describe(auto& it, auto& fields) {
        fields.optional("ca", it.ca);
        fields.optional("certificate", it.certificate);
        fields.optional("key", it.key);
    }
};

}  // namespace hydra
